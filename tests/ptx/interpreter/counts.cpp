#include "tests/ptx/interpreter/counts.h"

#include <fmt/format.h>

#include <utility>

namespace dgc::ptx {
namespace {

std::string phase_to_json(const Counts& c) {
  const std::pair<const char*, uint64_t> fields[] = {{"instructions", c.instructions},
                                                     {"spinning", c.spinning},
                                                     {"loads", c.loads},
                                                     {"stores", c.stores},
                                                     {"loads_128", c.loads_128},
                                                     {"stores_128", c.stores_128},
                                                     {"loaded_bytes", c.loaded_bytes},
                                                     {"stored_bytes", c.stored_bytes},
                                                     {"loaded_sectors", c.loaded_sectors},
                                                     {"stored_sectors", c.stored_sectors},
                                                     {"local", c.local},
                                                     {"global_atomics", c.global_atomics},
                                                     {"shared_atomics", c.shared_atomics},
                                                     {"barriers", c.barriers}};
  std::string text;
  for (const auto& [name, value] : fields) text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", name, value);
  return "{" + text + "}";
}

}  // namespace

std::string to_json(const CountedLaunch& launch) {
  std::string phases;
  for (const Counts& phase : launch.phases) phases += (phases.empty() ? "" : ", ") + phase_to_json(phase);
  return fmt::format(R"({{"kernel": "{}", "grid": {}, "block": {}, "phases": [{}]}})", launch.kernel, launch.grid,
                     launch.block, phases);
}

}  // namespace dgc::ptx
