/* server.h - a server of a folder, with faults on demand (server.py), for tests of what is read from elsewhere.
 * Invariant: it ends with the test, however that ends. */
#ifndef SUPPORT_REMOTE_SERVER_H
#define SUPPORT_REMOTE_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct support_server {
    pid_t pid;
    int input;     /* it serves until this is closed */
    unsigned port; /* on 127.0.0.1 */
} support_server;

/* False: there is no Python or no libcurl, and support_cannot() said so. */
bool support_server_start(const char *folder, support_server *out);
/* The same, whose files are s3://bucket/: sets the variables of Amazon's tools, a cache in `folder`, and a short
 * patience for this process.  Port 0: there is none, and support_cannot() said so. */
void support_server_bucket(const char *folder, support_server *out);
void support_server_stop(support_server *s);

/* Draws ROOT/source, 60 images in two splits, and ingests it into `data` as shards of 64 KiB, with the folder that it
 * is in. */
void support_server_dataset(const char *root, const char *data);

/* For real servers, which cannot choose a port themselves: ports that were free just now.  False: as above. */
bool support_server_ports(const char *folder, unsigned *ports, unsigned count);
/* Whether the shell ends the command with 0; what it says goes to FOLDER/log. */
bool support_server_runs(const char *folder, const char *command);

/* The next `count` answers (0: all) to paths with `match` in them are faulty; see server.py. */
void support_server_fault(const support_server *s, const char *kind, const char *match, unsigned count);
/* Another order of server.py's, with its query: "sign?key=A&secret=B". */
void support_server_tell(const support_server *s, const char *order);
void support_server_heal(const support_server *s);
/* A line for each answer since the last call: "STATUS BYTES PATH RANGE AUTHORIZED"; the caller's to free. */
char *support_server_log(const support_server *s);

#endif
