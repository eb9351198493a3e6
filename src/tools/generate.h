#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dgc {

struct GenerateOptions {
  std::vector<std::string> overrides{};  // changes to the run's config, as for `dgc train --set`
  std::string prompt{};  // read first; words that the model does not know count as <unk>, with a warning
  int64_t words = 100;
  double temperature = 1;  // below 1: likelier words; 0: always the likeliest
  uint64_t seed = 1;
};

// Lets the newest good checkpoint of a language model's run continue the prompt. A newline in the prompt counts as
// kEndOfLine, and an empty prompt is the beginning of a line. told() gets the prompt's words and then each new one,
// kEndOfLine among them, <unk> never. The same options give the same words. Throws UserError when the run is of another
// kind or has no checkpoint.
void generate(const std::filesystem::path& run, const GenerateOptions&,
              const std::function<void(std::string_view word)>& told);

}  // namespace dgc
