/* MPIsec for programs that want to know about it. Programs need not be changed, and none of this is needed to
 * be protected.
 *
 * The version of MPIsec, as in Semantic Versioning 2.0.0: releases with the same MAJOR (0: the same MINOR)
 * speak the same protocol. CMakeLists.txt's version is compared with these at configure time. */
#ifndef MPISEC_H
#define MPISEC_H

#define MPISEC_VERSION_MAJOR 0
#define MPISEC_VERSION_MINOR 1
#define MPISEC_VERSION_PATCH 0
#define MPISEC_VERSION "0.1.0"

#endif
