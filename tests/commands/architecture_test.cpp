// Who may include whom (docs/architecture.md), read from the #include lines of src/ themselves.
#include <algorithm>
#include <catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "paths.h"

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const fs::path kSourceTree = fs::path(DGC_SOURCE_DIR) / "src";

// Folders ("tensor/") and files that a folder may include beside its own. "" is main.cpp.
const std::map<std::string, Strings> kMayInclude = {
    {"tensor", {}},
    {"kernels", {"tensor/"}},
    {"kernels/cpu",
     {"kernels/backend.h", "kernels/carver.h", "kernels/dgc_args.h", "kernels/dgc_deal.h", "kernels/dgc_guess.h",
      "kernels/kernel_ops.inc", "kernels/library_ops.inc", "kernels/sum_order.h", "kernels/wire_codes.h", "tensor/"}},
    {"kernels/cpu/onednn_2", {"kernels/cpu/dnnl_descriptors.h"}},
    {"kernels/cpu/onednn_3", {"kernels/cpu/dnnl_descriptors.h"}},
    {"kernels/cuda",
     {"kernels/backend.h", "kernels/carver.h", "kernels/dgc_args.h", "kernels/dgc_deal.h", "kernels/dgc_guess.h",
      "kernels/kernel_ops.inc", "kernels/library_ops.inc", "kernels/sum_order.h", "kernels/wire_codes.h", "tensor/"}},
    {"dist", {"tensor/", "dist/launch/", "dist/meeting/"}},
    {"dist/launch", {"tensor/"}},
    {"dist/meeting", {"tensor/", "dist/launch/", "dist/peer_failed.h"}},
    {"layers", {"tensor/", "kernels/backend.h"}},
    {"models", {"tensor/", "layers/"}},
    {"optim", {"tensor/", "kernels/backend.h", "dist/"}},
    {"optim/dgc",
     {"tensor/", "kernels/backend.h", "kernels/dgc_args.h", "kernels/dgc_deal.h", "kernels/dgc_table.h", "dist/",
      "optim/"}},
    {"json", {"tensor/"}},
    {"data", {"tensor/"}},
    {"data/images", {"tensor/", "data/batches.h", "data/dataset.h", "data/file.h", "data/sampling.h"}},
    {"data/text", {"tensor/", "data/batches.h", "data/dataset.h", "data/file.h", "data/sampling.h"}},
    {"data/speech", {"tensor/", "data/batches.h", "data/dataset.h", "data/file.h", "data/sampling.h"}},
    {"decode", {"tensor/", "data/"}},
    {"config", {"tensor/", "layers/", "models/", "optim/", "data/", "json/"}},
    {"run", {"tensor/", "kernels/backend.h", "data/", "json/", "config/"}},
    {"tasks",
     {"tensor/", "kernels/backend.h", "dist/", "models/", "layers/", "optim/", "data/", "decode/", "config/", "run/"}},
    {"train",
     {"tensor/", "kernels/backend.h", "dist/", "layers/", "models/", "optim/", "data/", "json/", "config/", "run/",
      "tasks/", "train/ranks/", "train/steps/"}},
    {"train/ranks", {"tensor/", "kernels/backend.h", "dist/", "config/", "run/", "tasks/"}},
    {"train/steps", {"tensor/", "kernels/backend.h", "dist/", "models/", "optim/", "data/", "config/", "tasks/"}},
    {"tools",
     {"tensor/", "kernels/backend.h", "kernels/counting_backend.h", "dist/", "layers/", "models/", "optim/", "data/",
      "decode/", "json/", "config/", "run/", "tasks/", "train/"}},
    {"tools/bench",
     {"tensor/", "kernels/backend.h", "models/", "optim/", "config/", "tasks/", "train/", "tools/median.h",
      "tools/planned_rank.h"}},
    {"tools/report", {"tensor/", "json/", "config/", "run/", "tasks/", "train/ranks/", "tools/median.h"}},
    {"tools/study", {"tensor/", "json/", "config/", "run/", "tasks/", "train/ranks/", "tools/report/"}},
    {"commands", {"tools/", "train/", "tasks/", "run/", "config/", "json/", "tensor/"}},
    {"", {"commands/", "train/", "run/", "tensor/"}},
};

// Exceptions for one file, so that they stay seen.
const std::map<std::string, Strings> kFileMayInclude = {
    {"commands/info.cpp",
     {"kernels/backend.h", "dist/communicator.h", "dist/launch/launch.h"}},  // `dgc info` lists what this build has
    {"data/speech/manifest.cpp", {"json/lines.h"}},
};

// Libraries that one folder or file hides from all others.
struct Hidden {
  std::regex header;
  Strings allowed;
};
const std::vector<Hidden> kHidden = {
    {std::regex("nlohmann/.*"), {"json/"}},
    {std::regex("(dnnl|oneapi/).*"), {"kernels/cpu/"}},
    {std::regex("CLI/.*"), {"commands/"}},
    {std::regex("spdlog/.*"), {"run/", "tasks/", "train/", "tools/", "commands/", "main.cpp"}},
    {std::regex("(jpeglib|jerror|turbojpeg|spng|zlib|sndfile|samplerate|kiss_fftr)\\.h"), {"data/"}},
    {std::regex("(cuda|cublas|cudnn|cub/|cooperative_groups|nvtx3/).*"),
     {"kernels/cuda/", "tensor/device_cuda", "dist/nccl."}},
    {std::regex("nccl\\.h"), {"dist/nccl."}},
    {std::regex("mpi\\.h"), {"dist/mpi."}},
};

bool allowed_by(const Strings& list, const std::string& path) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& entry) { return path.starts_with(entry); });
}

std::string folder_of(const std::string& file) { return fs::path(file).parent_path().generic_string(); }

bool may_include(const std::string& file, const std::string& header) {
  const std::string folder = folder_of(file);
  if (folder_of(header) == folder) return true;
  const auto rule = kMayInclude.find(folder);
  if (rule != kMayInclude.end() && allowed_by(rule->second, header)) return true;
  const auto exception = kFileMayInclude.find(file);
  return exception != kFileMayInclude.end() && allowed_by(exception->second, header);
}

bool may_use_library(const std::string& file, const std::string& header) {
  return std::all_of(kHidden.begin(), kHidden.end(), [&](const Hidden& hidden) {
    return !std::regex_match(header, hidden.header) || allowed_by(hidden.allowed, file);
  });
}

// What is wrong with one file of src/, one sentence each. file: its path below src/.
Strings complaints(const std::string& file, const std::string& text) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  static const std::regex condition(R"(^\s*#\s*(if|ifdef|ifndef|elif|elifdef|elifndef)\b.*)");
  static const std::regex backend("CUDA|NVCC|NCCL|MPI|DNNL|ONEDNN", std::regex::icase);
  Strings found;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, include)) {
      const std::string header = match[2];
      if (match[1] == "\"" ? !may_include(file, header) : !may_use_library(file, header)) {
        found.push_back(file + " must not include " + header);
      }
    } else if (std::regex_match(line, condition) && std::regex_search(line, backend)) {
      found.push_back(file + " chooses a backend with " + line);
    }
  }
  const bool header = file.ends_with(".h") || file.ends_with(".cuh");
  if (header && text.find("#pragma once\n") == std::string::npos) found.push_back(file + " lacks #pragma once");
  return found;
}

std::map<std::string, std::string> sources() {
  static const Strings kExtensions = {".h", ".cpp", ".cu", ".cuh"};
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(kSourceTree)) {
    const std::string extension = entry.path().extension().string();
    if (std::find(kExtensions.begin(), kExtensions.end(), extension) == kExtensions.end()) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    files[entry.path().lexically_relative(kSourceTree).generic_string()] = text.str();
  }
  return files;
}

}  // namespace

TEST_CASE("the source keeps to its architecture") {
  const auto files = sources();
  REQUIRE(files.size() > 100);
  REQUIRE(files.contains("main.cpp"));
  for (const auto& [file, text] : files) {
    INFO("docs/architecture.md says who may include whom");
    CHECK(complaints(file, text) == Strings{});
    CHECK(kMayInclude.count(folder_of(file)) == 1);  // a new folder needs its line above
  }
}

TEST_CASE("exceptions in the architecture are still needed") {
  const auto files = sources();
  for (const auto& [file, headers] : kFileMayInclude) {
    REQUIRE(files.contains(file));
    for (const std::string& header : headers) CHECK(files.at(file).find('"' + header + '"') != std::string::npos);
  }
}

TEST_CASE("the architecture check sees what it looks for") {
  const auto [file, line, caught] = GENERATE(table<std::string, std::string, bool>({
      {"tensor/shape.cpp", "#include \"tensor/errors.h\"", false},
      {"tensor/shape.cpp", "#include \"kernels/backend.h\"", true},
      {"kernels/backend.h", "#include \"layers/layer.h\"", true},
      {"kernels/cpu/pool.cpp", "#include \"kernels/backend.h\"", false},
      {"kernels/cpu/pool.cpp", "#include \"kernels/cuda/pool.h\"", true},
      {"layers/pool.cpp", "#include \"kernels/backend.h\"", false},
      {"layers/pool.cpp", "#include \"kernels/cpu/cpu_backend.h\"", true},
      {"layers/pool.cpp", "  #  include \"optim/optimizer.h\"  // why not", true},
      {"models/resnet.cpp", "#include \"optim/optimizer.h\"", true},
      {"data/batches.cpp", "#include \"config/options.h\"", true},
      {"data/speech/an4.cpp", "#include \"json/lines.h\"", true},
      {"data/speech/manifest.cpp", "#include \"json/lines.h\"", false},
      {"data/dataset.h", "#include \"data/text/text.h\"\n#pragma once", true},
      {"data/images/idx.cpp", "#include \"data/file.h\"", false},
      {"data/images/idx.cpp", "#include \"data/text/text_file.h\"", true},
      {"data/speech/speech.cpp", "#include \"decode/beam.h\"", true},
      {"decode/beam.cpp", "#include \"data/speech/alphabet.h\"", false},
      {"decode/beam.cpp", "#include <sndfile.h>", true},
      {"commands/train.cpp", "#include \"kernels/backend.h\"", true},
      {"commands/info.cpp", "#include \"kernels/backend.h\"", false},
      {"unheard_of/x.cpp", "#include \"tensor/shape.h\"", true},
      {"json/text.cpp", "#include <nlohmann/json.hpp>", false},
      {"config/check.cpp", "#include <nlohmann/json.hpp>", true},
      {"run/metrics.cpp", "#include <nlohmann/json.hpp>", true},
      {"layers/conv2d.cpp", "#include <dnnl.hpp>", true},
      {"layers/conv2d.cpp", "#include <oneapi/dnnl/dnnl.hpp>", true},
      {"tasks/make.cpp", "#include \"train/rank.h\"", true},
      {"train/trainer.cpp", "#include <CLI/CLI.hpp>", true},
      {"optim/sgd.cpp", "#include \"optim/dgc/exchange.h\"", true},
      {"dist/meeting/watch.cpp", "#include \"dist/peer_failed.h\"", false},
      {"dist/meeting/watch.cpp", "#include \"dist/communicator.h\"", true},
      {"train/steps/local_steps.cpp", "#include \"train/rank.h\"", true},
      {"optim/dgc/overlap.cpp", "#include <spdlog/spdlog.h>", true},
      {"optim/dgc/dgc.cpp", "#include <mpi.h>", true},
      {"optim/dgc/dgc.cpp", "#include <cuda_runtime.h>", true},
      {"kernels/cuda/add.cu", "#include <cuda_runtime.h>", false},
      {"train/trainer.cpp", "#ifdef DGC_WITH_CUDA", true},
      {"dist/threads.cpp", "#if defined(USE_MPI)", true},
      {"tensor/simd.h", "#if defined(__x86_64__)\n#pragma once", false},
      {"layers/new.h", "struct New {};", true},
      {"layers/new.h", "#pragma once", false},
  }));
  CAPTURE(file, line);
  CHECK(complaints(file, line + "\n").empty() != caught);
}
