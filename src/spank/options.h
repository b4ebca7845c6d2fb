// What plugstack.conf and the user say, and what follows for a step.
#pragma once

#include <stddef.h>

enum { mpisec_path_bytes = 4096 };

// Of plugstack.conf.
struct mpisec_site {
    char mpisec[mpisec_path_bytes];    // the program
    char key_file[mpisec_path_bytes];  // for MPISEC_KEY_FILE, %j is the job; empty: left to the user
    const char*
        protect;  // partitions whose steps are protected unless the user says --mpisec=off; may be null
    const char* require;  // partitions where --mpisec=off is refused; may be null
};

enum mpisec_wish { mpisec_unsaid, mpisec_on, mpisec_off };
enum mpisec_duty { mpisec_leave, mpisec_protect, mpisec_require };

// Reads the arguments of plugstack.conf. Returns null, or the word that makes no sense.
const char* mpisec_read_site(struct mpisec_site* site, int count, char** words);

// --mpisec, --mpisec=on, --mpisec=off. Returns 0, or -1 for anything else.
int mpisec_read_wish(enum mpisec_wish* wish, const char* value);

// What is done for a step in `partition`: mpisec_require is mpisec_protect, with nothing that could undo it.
enum mpisec_duty mpisec_duty_of(const struct mpisec_site* site, enum mpisec_wish wish, const char* partition);

// `pattern` with each %j replaced. Returns 0, or -1 when it does not fit.
int mpisec_expand(const char* pattern, unsigned job, char* to, size_t size);
