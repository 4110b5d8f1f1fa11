/* environment.c - see environment.h. */
#include "base/environment.h"

#include <stdlib.h>

const char *mr_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool mr_env_cache_path(const char *name, mr_buf *out)
{
    const char *cache = mr_env("XDG_CACHE_HOME"), *home = mr_env("HOME");
    if (cache && *cache == '/')
        mr_buf_printf(out, "%s/millrace/%s", cache, name);
    else if (home && *home == '/')
        mr_buf_printf(out, "%s/.cache/millrace/%s", home, name);
    else
        return false;
    return !out->failed;
}
