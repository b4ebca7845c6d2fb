#define TOML_IMPLEMENTATION
#include "base/toml.hpp"
