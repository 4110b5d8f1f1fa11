/* test_operations.c - the table of operations: words, operands, costs. */
#include <string.h>

#include "device/operations.h"
#include "tests/support/support.h"

static void every_operation_has_a_word_and_a_family(void **state)
{
    (void)state;
    for (mr_op_kind a = 0; a < MR_OP_COUNT; a++) {
        assert_true(mr_op_family(a) < MR_FAMILY_COUNT && mr_op_family(a) != MR_FAMILY_copies);
        for (mr_op_kind b = 0; b < a; b++)
            assert_string_not_equal(mr_op_word(a), mr_op_word(b));
    }
    assert_string_equal(mr_op_word(MR_OP_norm_back), "norm_back");
}

/* What moves is counted once, and twice where a result is added to; rows between strides are not. */
static void products_cost_what_they_move(void **state)
{
    enum { M = 5, N = 7, K = 11 };
    float a[1] = {0}, b[1] = {0}, c[1] = {0}, bias[1] = {0};
    mr_gemm g = {.m = M, .n = N, .k = K, .b_type = MR_BF16, .a = a, .b = b, .c = c, .ldc = 100};
    const mr_op op = {MR_OP_gemm, &g};
    mr_operand o[MR_OPERANDS_MAX];
    (void)state;
    assert_true(mr_op_flops(&op) == 2.0 * M * N * K);
    assert_true(mr_op_bytes(&op) == 4.0 * M * K + 2.0 * K * N + 4.0 * M * N);
    g.accumulate = true;
    g.bias = bias;
    assert_true(mr_op_bytes(&op) == 4.0 * M * K + 2.0 * K * N + 8.0 * M * N + 4.0 * N);
    assert_int_equal(mr_op_operands(&op, o), 4);
    assert_ptr_equal(*o[2].pointer, c);
    assert_int_equal(o[2].use, MR_IN | MR_OUT);
    assert_int_equal(o[2].capacity, 4 * 100 + N);
    g.m = 0; /* touches nothing */
    mr_op_operands(&op, o);
    assert_true(o[0].capacity == 0 && o[1].capacity == 0 && o[2].capacity == 0);
}

/* The operands of the forward pass, which are read, and its own. */
static void attention_back_has_those_of_attention(void **state)
{
    const mr_attention a = {.batch = 2, .heads = 3, .head_dim = 4, .queries = 5, .keys = 6, .k_stride = 20};
    const mr_attention_back b = {.forward = &a};
    const mr_op forward = {MR_OP_attention, &a}, back = {MR_OP_attention_back, &b};
    mr_operand f[MR_OPERANDS_MAX], o[MR_OPERANDS_MAX];
    size_t n = mr_op_operands(&forward, f);
    (void)state;
    assert_int_equal(mr_op_operands(&back, o), n + 4);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(o[i].pointer, f[i].pointer);
        assert_true(o[i].use & MR_IN);
    }
    assert_ptr_equal(o[n].pointer, &b.d_out);
    assert_int_equal(o[n].use, MR_IN);
    assert_ptr_equal(o[n + 2].pointer, &b.d_k);
    assert_int_equal(o[n + 2].use, MR_OUT);
    assert_int_equal(o[n + 2].capacity, 11 * 20 + 12);
    assert_true(mr_op_flops(&back) == 2.5 * mr_op_flops(&forward));
    assert_true(mr_op_flops(&forward) == 4.0 * 2 * 3 * 4 * 5 * 6);
}

/* A long table of which few rows are read. */
static void tables_cost_the_rows_that_are_read(void **state)
{
    const int32_t ids[3] = {0};
    float table[1] = {0}, y[1] = {0};
    const mr_lookup l = {.rows = 3, .width = 8, .entries = 50000, .ids = ids, .table = table, .y = y};
    const mr_op op = {MR_OP_lookup, &l};
    mr_operand o[MR_OPERANDS_MAX];
    (void)state;
    mr_op_operands(&op, o);
    assert_true(mr_op_bytes(&op) == 4.0 * (3 + 3 * 8 + 3 * 8));
    assert_int_equal(o[1].capacity, 50000 * 8);
    assert_int_equal(o[0].entries, 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_a_word_and_a_family),
        cmocka_unit_test(products_cost_what_they_move),
        cmocka_unit_test(attention_back_has_those_of_attention),
        cmocka_unit_test(tables_cost_the_rows_that_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
