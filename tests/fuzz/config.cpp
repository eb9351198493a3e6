// Configs, as text and as --set overrides. The input is a text, then, each behind a zero byte, overrides. What is
// accepted must be accepted again with every default filled in, and say the same.
#include "config/config.h"

#include <vector>

#include "tests/fuzz/input.h"

using namespace dgc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= all.size();) {
    const size_t end = std::min(all.find('\0', begin), all.size());
    parts.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::vector<std::string> overrides(parts.begin() + 1, parts.end());

  Config config;
  const std::string origin = "fuzz.json";
  try {
    config = parse_config(parts[0], origin, overrides);
  } catch (const UserError& error) {  // it names the file, or the override
    const std::string what = error.what();
    fuzz::require(what.find(origin) != std::string::npos || what.find("--set") != std::string::npos);
    return 0;
  }
  const std::string resolved = resolved_json(config);
  const Config again = parse_config(resolved, origin);
  fuzz::require(resolved_json(again) == resolved);
  fuzz::require(config_differences(config, again).empty());
  return 0;
}
