/* arm_instructions.c - a plugin of QEMU that counts the instructions of the emulated program and prints them at its
 * end. Invariant: counts do not depend on this machine; they are not times.
 *
 * QEMU's header is in no package of Debian 12; what is used of version 1 of its interface is declared here
 * (https://www.qemu.org/docs/master/devel/tcg-plugins.html). */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
enum { INLINE_ADD = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*fn)(plugin_id id, void *block));
void qemu_plugin_register_vcpu_tb_exec_inline(void *block, int op, void *counter, uint64_t add);
size_t qemu_plugin_tb_n_insns(const void *block);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*fn)(plugin_id id, void *data), void *data);

EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

int qemu_plugin_version = 1;

static uint64_t instructions; /* without locks: the programs that are counted have one thread */

static void translated(plugin_id id, void *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, INLINE_ADD, &instructions, qemu_plugin_tb_n_insns(block));
}

static void ended(plugin_id id, void *data)
{
    (void)id;
    (void)data;
    fprintf(stderr, "instructions %" PRIu64 "\n", instructions);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
