// toml++, compiled once (toml.cpp): without exceptions, and hidden in the archive that links it.
#pragma once

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expression) static_cast<void>(0)  // malformed input is an error, in debug builds too
#include <toml++/toml.h>
