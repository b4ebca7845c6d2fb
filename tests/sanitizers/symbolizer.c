/* What a sanitizer starts in a rank to name addresses: llvm-symbolizer, without what is preloaded there. Linked statically, or the
 * preloaded library, whose sanitizer this program has not, would already stop it. */
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** arguments) {
    (void)count;
    unsetenv("LD_PRELOAD");
    execvp("llvm-symbolizer-14", arguments);
    execvp("llvm-symbolizer", arguments);
    return 127;
}
