#include "options.h"

#include <stdio.h>
#include <string.h>

static const char* value_of(const char* word, const char* name) {
    const size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static int copy(char* to, const char* from) {
    return snprintf(to, mpisec_path_bytes, "%s", from) < mpisec_path_bytes ? 0 : -1;
}

const char* mpisec_read_site(struct mpisec_site* site, int count, char** words) {
    memset(site, 0, sizeof *site);
    copy(site->mpisec, "mpisec");
    for (int i = 0; i < count; ++i) {
        const char* value;
        if ((value = value_of(words[i], "mpisec"))) {
            if (copy(site->mpisec, value) != 0) return words[i];
        } else if ((value = value_of(words[i], "key_file"))) {
            if (copy(site->key_file, value) != 0) return words[i];
        } else if ((value = value_of(words[i], "protect"))) {
            site->protect = value;
        } else if ((value = value_of(words[i], "require"))) {
            site->require = value;
        } else {
            return words[i];
        }
    }
    return NULL;
}

int mpisec_read_wish(enum mpisec_wish* wish, const char* value) {
    if (!value || !*value || strcmp(value, "on") == 0)
        *wish = mpisec_on;
    else if (strcmp(value, "off") == 0)
        *wish = mpisec_off;
    else
        return -1;
    return 0;
}

// Whether `list`, as a,b, has `name`; "all" has every one.
static int has(const char* list, const char* name) {
    if (!list) return 0;
    const size_t length = strlen(name);
    for (const char* entry = list; *entry;) {
        const size_t size = strcspn(entry, ",");
        if (size == 3 && strncmp(entry, "all", 3) == 0) return 1;
        if (size == length && strncmp(entry, name, size) == 0) return 1;
        entry += size + (entry[size] == ',');
    }
    return 0;
}

enum mpisec_duty mpisec_duty_of(const struct mpisec_site* site, enum mpisec_wish wish,
                                const char* partition) {
    if (has(site->require, partition)) return mpisec_require;
    if (wish != mpisec_unsaid) return wish == mpisec_on ? mpisec_protect : mpisec_leave;
    return has(site->protect, partition) ? mpisec_protect : mpisec_leave;
}

int mpisec_expand(const char* pattern, unsigned job, char* to, size_t size) {
    size_t at = 0;
    for (const char* from = pattern; *from; ++from) {
        int wrote;
        if (from[0] == '%' && from[1] == 'j') {
            wrote = snprintf(to + at, size - at, "%u", job);
            ++from;
        } else {
            wrote = snprintf(to + at, size - at, "%c", *from);
        }
        if (wrote < 0 || (size_t)wrote >= size - at) return -1;
        at += (size_t)wrote;
    }
    to[at] = 0;
    return 0;
}
