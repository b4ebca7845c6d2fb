/* Steps from their text. */
#include "program.h"

int parse_step(struct step* step, char* line, int number) {
    memset(step, 0, sizeof *step);
    step->number = number;
    char* rest = NULL;
    for (char* word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        if (word[0] == '#') break;
        if (!step->verb) {
            step->verb = word;
            continue;
        }
        char* equals = strchr(word, '=');
        if (!equals || step->pairs == MOST_PAIRS) give_up("line %d: `%s` is not key=value", number, word);
        *equals = 0;
        step->keys[step->pairs] = word;
        step->values[step->pairs++] = equals + 1;
    }
    return step->verb != NULL;
}

static const char* find(const struct step* step, const char* key) {
    for (int i = 0; i < step->pairs; ++i)
        if (strcmp(step->keys[i], key) == 0) return step->values[i];
    return NULL;
}

int entries(const struct step* step, const char* key) {
    const char* list = find(step, key);
    if (!list || !*list) return 0;
    int n = 1;
    for (; *list; ++list) n += *list == ',';
    return n;
}

static const char* find_entry(const struct step* step, const char* key, int i) {
    int n = entries(step, key);
    if (n == 0) return NULL;
    const char* at = find(step, key);
    for (i %= n; i > 0; --i) at = strchr(at, ',') + 1;
    return at;
}

long entry(const struct step* step, const char* key, int i, long otherwise) {
    const char* at = find_entry(step, key, i);
    return at ? strtol(at, NULL, 10) : otherwise;
}

void entry_text(const struct step* step, const char* key, int i, const char* otherwise, char text[32]) {
    const char* at = find_entry(step, key, i);
    if (!at) at = otherwise;
    size_t n = strcspn(at, ",");
    if (n > 31) n = 31;
    memcpy(text, at, n);
    text[n] = 0;
}

int is(const struct step* step, const char* key, const char* text) {
    const char* found = find(step, key);
    return found && strcmp(found, text) == 0;
}

int verb_is(const struct step* step, const char* verb) {
    return strcmp(step->verb, verb) == 0;
}
