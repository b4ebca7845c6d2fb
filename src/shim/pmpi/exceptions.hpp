// Exceptions that a procedure of the program's throws (an error handler, a copy of an attribute) pass MPIsec's frames as they pass the MPI
// library's.
#pragma once

namespace mpisec::shim {

/// MPIsec carries an unwinder of its own, whose table of registers is filled by its own first unwinding. The program's unwinder asks it about
/// MPIsec's frames, and an empty table ends the process. So it unwinds once, before the program can throw.
void let_exceptions_through();

}  // namespace mpisec::shim
