/* The rules, one function each; see the file of the same name. */
#ifndef MPISEC_TESTS_RULES_H
#define MPISEC_TESTS_RULES_H
#define RULE(name) void rule_##name(void);
#include "rules.inc"
#undef RULE
#endif
