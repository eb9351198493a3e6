// A run directory as a whole: what eval, report, generate and resume read of it. The input is its files, each behind a
// line ===: config.json, a checkpoint's manifest.json, the header of its weights.safetensors and behind a newline their
// data, metrics.jsonl, vocabulary.txt, classes.json. Checksums that random bytes would never hit are put right: that of
// the manifest, and in it, for BYTES and HASH, those of the weights.
#include <spdlog/spdlog.h>

#include <vector>

#include "run/checkpoint.h"
#include "run/class_names.h"
#include "run/metrics.h"
#include "run/run_directory.h"
#include "run/run_state.h"
#include "run/vocabulary_file.h"
#include "tests/fuzz/safetensors_file.h"
#include "tests/fuzz/scratch.h"
#include "tests/support/json_lines.h"
#include "tools/report/report_data.h"
#include "tools/report/report_page.h"
#include "train/weights_file.h"

using namespace dgc;
using fuzz::accepted;
using fuzz::require;

namespace {

const std::string kCheckpoint = "checkpoints/step-000000007/";

std::vector<std::string> split(const std::string& all, const std::string& mark) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= all.size();) {
    const size_t end = std::min(all.find(mark, begin), all.size());
    parts.push_back(all.substr(begin, end - begin));
    begin = end + mark.size();
  }
  return parts;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

void write_run(const fuzz::Scratch& run, std::vector<std::string> parts) {
  parts.resize(6);
  const std::string weights = fuzz::safetensors_file(parts[2]);
  std::string manifest = replaced(parts[1], "BYTES", std::to_string(weights.size()));
  manifest = replaced(manifest, "HASH", xxh64_hex(weights));
  run.write("config.json", parts[0]);
  run.write(kCheckpoint + "manifest.json", manifest);
  run.write(kCheckpoint + "manifest.xxh64", xxh64_hex(manifest));
  run.write(kCheckpoint + "weights.safetensors", weights);
  run.write("metrics.jsonl", parts[3]);
  run.write("vocabulary.txt", parts[4]);
  run.write("classes.json", parts[5]);
}

// A small model's, by the names and shapes of the seed.
void read_weights(const std::string& run, const Checkpoint& checkpoint) {
  static const ParamLayout layout({{"fc.weight", {2, 3}, {}}, {"fc.bias", {2}, {}}});
  static const ParamLayout statistics_layout({{"bn.running_mean", {2}, {}}});
  static const Arena weights(make_cpu_device(), layout), statistics(make_cpu_device(), statistics_layout);
  accepted(run, [&] { load_weights(checkpoint, weights, statistics, {}); });
}

// Numbers that are accepted are within what arithmetic with them can bear.
void read_state(const std::string& run, const Checkpoint& checkpoint) {
  RunState state;
  if (!accepted(run, [&] { state = read_run_state(checkpoint); })) return;
  require(state.position >= 0 && state.steps_per_epoch >= 0 && state.workers >= 0 && state.loss_scale > 0);
}

void read_classes(const std::string& run) {
  std::vector<std::string> names;
  if (!accepted(run, [&] { names = run_class_names(run); }) || names.empty()) return;
  save_class_names(run, names);
  require(run_class_names(run) == names);
}

void report(const std::string& run) {
  std::vector<RunGroup> data;
  if (!accepted(run, [&] { data = read_groups({run, run}); })) return;
  require(!report_page(data).empty());
  require(!results_table(data).empty());
}

// What resuming keeps can be read, and gone on with.
void resume_metrics(const std::string& run, int64_t step) {
  if (step == INT64_MAX) return;
  StepMetrics next;
  next.step = step + 1;
  if (!accepted(run, [&] { MetricsWriter(run, {step}).write(next); })) return;
  const std::vector<Row> rows = read_json_lines(run + "/metrics.jsonl");
  require(!rows.empty() && rows.back() == read_json_line(to_json_line(to_row(next)), "next"));
  for (const Row& row : rows) require(row.integer("step").value_or(INT64_MAX) <= next.step);
}

void read_words(const std::string& run) {
  std::vector<std::string> words;
  if (!accepted(run, [&] { words = run_vocabulary(run).words(); })) return;
  save_vocabulary(run, run_vocabulary(run));
  require(run_vocabulary(run).words() == words);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Scratch scratch;
  static const std::string run = scratch.path();
  spdlog::set_level(spdlog::level::off);
  std::filesystem::create_directories(run + "/" + kCheckpoint);
  write_run(scratch, split({reinterpret_cast<const char*>(data), size}, "\n===\n"));

  accepted(run, [&] { run_config(run); });
  if (std::filesystem::file_size(run + "/vocabulary.txt") > 0) read_words(run);
  read_classes(run);
  report(run);
  std::optional<Checkpoint> checkpoint;
  if (!accepted(run, [&] { checkpoint = newest_checkpoint(run); })) return 0;
  require(checkpoint.has_value());
  read_weights(run, *checkpoint);
  read_state(run, *checkpoint);
  resume_metrics(run, checkpoint->manifest().step);
  return 0;
}
