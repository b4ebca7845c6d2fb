// The value of a macro as text, as for version numbers.
#pragma once

#define MPISEC_TEXT_(x) #x
#define MPISEC_TEXT(x) MPISEC_TEXT_(x)
