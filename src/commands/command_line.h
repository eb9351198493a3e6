#pragma once

namespace dgc {

// Runs the command that main()'s arguments name, or prints the help that they ask for. Throws ToldError
// (train/ranks/failure.h) where the arguments are wrong, and what the command throws.
void run_command_line(int argc, char** argv);

}  // namespace dgc
