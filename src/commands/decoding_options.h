#pragma once

#include <CLI/CLI.hpp>

#include "tasks/speech_scorer.h"

namespace dgc {

// Adds --beam, --lm, --word-weight and --word-bonus, for the commands that recognise speech.
void add_decoding_options(CLI::App& command, DecodingOptions& options);

}  // namespace dgc
