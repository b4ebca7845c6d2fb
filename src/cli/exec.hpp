// mpisec exec: preloads MPIsec into a program and becomes that program.
#pragma once

namespace mpisec::cli {

/// `arguments` as in main, from "exec" on. Returns an exit status only when the program could not be started:
/// 2 for a wrong command line, 127 when there is no such program, 126 for all else, as shells and env(1) do.
int exec_command(int count, char** arguments);

}  // namespace mpisec::cli
