#!/bin/bash
# browser_test.sh MILLRACE - opens reports in Chromium, narrow and wide: nothing on the console, nothing wider than the window,
# and nothing that axe-core objects to, where MILLRACE_AXE names its axe.min.js.  Exits with 77 without Chromium.
set -eu
millrace=$1
command -v chromium >/dev/null || { echo "not tried: reports in a browser: no chromium" && exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-browser-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0
[ -n "${MILLRACE_AXE:-}" ] || echo "not tried: axe-core: MILLRACE_AXE does not name axe.min.js"

# open WIDTH PAGE: the page's title after its scripts ran; what the console got is in `log`.
open() {
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$1,1000" --user-data-dir="$work/profile" \
        --virtual-time-budget=20000 --enable-logging=stderr --dump-dom "file://$work/$2" 2>log |
        sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p'
}

for layout in coco imagenette newyorker; do
    "$millrace" sample "$layout" --layout "$layout" --images 30 --quiet
    "$millrace" ingest "$layout" "$layout.mr" --quiet
done
shape=(--image-size 32 --patch 16 --hidden 64 --layers 1 --heads 1 --mlp 64 --batch 4 --steps 6 --eval-every 3 --threads 1)
"$millrace" train imagenette.mr --model vit "${shape[@]}" --output vit --quiet
"$millrace" tokenizer newyorker.mr --text-column image_description --size 400 -o tokenizer.json >/dev/null
"$millrace" train newyorker.mr --model bridgetower "${shape[@]}" --cross-layers 1 --embed 16 --tokenizer tokenizer.json \
    --output pairs --quiet
for layout in coco.mr imagenette.mr newyorker.mr vit pairs; do
    "$millrace" report "$layout" -o page.html --quiet
    {
        sed 's/<\/body>.*//; s/<\/html>//' page.html
        echo '<script>'
        cat "${MILLRACE_AXE:-/dev/null}"
        # shellcheck disable=SC2016 # a script
        echo '</script><script>
            document.querySelector("figure").click();
            const zoomed = document.querySelectorAll(".zoomed").length;
            document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
            const wide = document.documentElement.scrollWidth > window.innerWidth;
            document.title = `zoomed ${zoomed}, then ${document.querySelectorAll(".zoomed").length}, too wide ${wide}`;
            if (window.axe) axe.run().then(r => document.title += `, axe ${r.violations.map(v => v.id)}`);
            </script></body></html>'
    } >tried.html
    for width in 500 1280; do
        title=$(open "$width" tried.html)
        case $title in
        "zoomed 1, then 0, too wide false" | "zoomed 1, then 0, too wide false, axe ") ;;
        *) echo "$layout, $width pixels: $title" && failed=1 ;;
        esac
        if grep CONSOLE log; then
            failed=1
        fi
    done
done
echo "$((1 - failed)) passed, $failed failed"
exit "$failed"
