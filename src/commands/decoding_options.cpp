#include "commands/decoding_options.h"

#include "commands/option_checks.h"

namespace dgc {

void add_decoding_options(CLI::App& command, DecodingOptions& options) {
  command.add_option("--beam", options.beam, "of speech: keep so many texts in a beam search (1: greedy, at once)")
      ->check(whole_number(1, 100000))
      ->capture_default_str();
  CLI::Option* words = command
                           .add_option("--lm", options.words,
                                       "of speech, with --beam: a word n-gram model in ARPA's format, also gzipped")
                           ->check(not_empty());
  command.add_option("--word-weight", options.word_weight, "of the --lm model's log probability")
      ->check(number(0, 1000))
      ->needs(words)
      ->capture_default_str();
  command
      .add_option("--word-bonus", options.word_bonus, "added for each word with --lm, which by itself likes few words")
      ->check(number(-1000, 1000))
      ->needs(words)
      ->capture_default_str();
}

}  // namespace dgc
