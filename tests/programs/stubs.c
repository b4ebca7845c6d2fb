#include "program.h"
int attribute_step(const struct step* step) { (void)step; return 0; }
int error_step(const struct step* step) { (void)step; return 0; }
int group_step(const struct step* step) { (void)step; return 0; }
void free_attributes(void){}
void free_handlers(void){}
