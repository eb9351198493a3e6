#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/config.h"
#include "tensor/errors.h"

namespace dgc::test {

// A small valid config. The tests change one thing in it.
inline const std::string kExample = R"({
  "name": "example",
  "model": {"type": "resnet", "depth": 20, "classes": 10},
  "data": {"type": "cifar10", "path": "data/cifar-10", "augment": {"pad_crop": 4, "flip": true}},
  "training": {"epochs": 30, "batch_per_worker": 32, "max_steps": null},
  "optimizer": {"type": "dgc", "momentum": 0.9, "sparsity": 0.999,
                "warmup": {"epochs": 4, "sparsity": [0.75, 0.9375]}},
  "learning_rate": {"type": "step", "base": 0.1, "milestones": [15, 22], "factor": 0.1}
}
)";

inline std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  DGC_CHECK(at != std::string::npos, "the example has no " + from);
  return std::string(text).replace(at, from.size(), to);
}

inline Config with(const std::vector<std::string>& overrides) { return parse_config(kExample, "run.json", overrides); }

// What the UserError says that `act` throws; "" when it throws none.
template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// A file of its own, gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("dgc_config_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace dgc::test
