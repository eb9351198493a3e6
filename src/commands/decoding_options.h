#pragma once

#include <CLI/CLI.hpp>

#include "tasks/speech_scorer.h"

namespace dgc {

// --beam, --lm, --word-weight and --word-bonus, for the commands that hear.
void add_decoding_options(CLI::App& command, DecodingOptions& options);

}  // namespace dgc
