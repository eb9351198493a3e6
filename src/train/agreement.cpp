#include "train/agreement.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include "config/config.h"
#include "config/model_types.h"
#include "run/conv_plans_file.h"
#include "run/run_directory.h"
#include "run/run_lock.h"
#include "run/version.h"
#include "run/vocabulary_file.h"
#include "tensor/errors.h"
#include "tensor/params.h"
#include "train/ranks/interrupt.h"
#include "train/ranks/shared_problem.h"

namespace dgc {
namespace {

constexpr const char* kConfig = "config";
constexpr const char* kTrainingSetFacts = "training set";

// The advice for fields whose names begin with `field`.
struct Fix {
  std::string_view field, text;
};
constexpr Fix kFixes[] = {
    {kInitialWeights, "give all ranks the same file"},      {"conv_plans", "give all ranks the same file"},
    {"config", "give all ranks the same config and --set"}, {"option", "give all ranks the same options"},
    {"vocabulary", "give all ranks the same data"},         {kTrainingSetFacts, "give all ranks the same data"},
    {"validation set", "give all ranks the same data"},     {"test set", "give all ranks the same data"}};

std::string_view fix_for(std::string_view field) {
  for (const Fix& fix : kFixes) {
    if (field.starts_with(fix.field)) return fix.text;
  }
  return "run the same dgc everywhere";
}

void describe(Row& facts, const std::string& set, const Dataset& dataset) {
  for (const Trait& trait : dataset.traits()) facts.set(set + ", its " + trait.name, trait.value);
  for (const Trait& trait : dataset.fingerprint()) facts.set(set + ", " + trait.name, trait.value);
}

// Names the config's key that differs. Both configs are complete, because both have been loaded.
[[noreturn]] void throw_config_differs(size_t rank, const std::string& here, const std::string& there) {
  const Config a = parse_config(here, "rank 0's config"), b = parse_config(there, "another rank's config");
  std::vector<ConfigDifference> all = config_differences(a, b);
  if (a.name != b.name) all.push_back({"name", a.name, b.name});
  if (a.output != b.output) all.push_back({"output", a.output, b.output});
  DGC_CHECK(!all.empty(), "configs that are written differently differ in some key");
  const auto shown = [](const std::string& value) { return value.empty() ? "nothing" : value; };
  throw_user_error("rank {} was started with {} = {}, and rank 0 with {}; {}", rank, all[0].path, shown(all[0].b),
                   shown(all[0].a), fix_for(kConfig));
}

[[noreturn]] void throw_difference(size_t rank, const Row& here, const Row& there) {
  for (const Row* facts : {&here, &there}) {
    for (const auto& [field, value] : facts->fields()) {
      const std::string a = here.text(field).value_or("missing"), b = there.text(field).value_or("missing");
      if (a == b) continue;
      if (field == kConfig) throw_config_differs(rank, a, b);
      throw_user_error("rank {} differs from rank 0 in: {}: {} there, {} on rank 0; {}", rank, field, b, a,
                       fix_for(field));
    }
  }
  throw InternalError("texts that differ hold some field that does");
}

}  // namespace

Row start_facts(const StartOf& start) {
  Row facts;
  facts.set("program", program_version()).set("formats", format_versions());
  facts.set(kConfig, resolved_json(start.config));
  facts.set("option --resume", std::string(start.options.resume ? "given" : "not given"));
  facts.set("option --overwrite", std::string(start.options.overwrite ? "given" : "not given"));
  facts.set("option --out", run_path(start.config, start.options).string());
  facts.set("conv_plans, its checksum", conv_plans_xxh64(start.config));
  const DataView& data = start.data;
  if (data.vocabulary != nullptr) facts.set("vocabulary, its checksum", vocabulary_xxh64(*data.vocabulary));
  describe(facts, kTrainingSetFacts, data.train);
  if (data.valid != nullptr) describe(facts, "validation set", *data.valid);
  describe(facts, "test set", data.test);
  const ParamLayout params(make_network(start.config.model, data.train.sample()).params());
  for (int i = 0; i < params.size(); ++i) {
    facts.set(fmt::format("parameter {}", i),
              fmt::format("{} {} at {}", params.spec(i).name, params.spec(i).shape.str(), params.offset(i)));
  }
  return facts;
}

std::string training_set_xxh64(const Row& facts) {
  Row of_set;
  for (const auto& [field, value] : facts.fields()) {
    if (field.starts_with(kTrainingSetFacts)) of_set.set(field, facts.text(field).value_or(""));
  }
  const std::string text = to_json_line(of_set);
  return xxh64_hex(text);
}

void require_agreement(Communicator& communicator, Device& device, const Row& facts) {
  if (communicator.size() == 1) return;
  const std::string mine = to_json_line(facts);
  const uint64_t hash = XXH64(mine.data(), mine.size(), 0);
  const std::vector<uint64_t> all = gather_host<uint64_t>(communicator, device, {&hash, 1});
  if (std::ranges::count(all, all[0]) == communicator.size()) return;
  const std::vector<std::string> texts = told_by_all(communicator, device, mine);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] != texts[0]) {
      throw_difference(rank, read_json_line(texts[0], "rank 0"), read_json_line(texts[rank], "another rank"));
    }
  }
  throw InternalError("texts with another checksum differ");
}

std::string told_by_first(Communicator& communicator, Device& device, const std::string& mine) {
  return told_by_all(communicator, device, communicator.rank() == 0 ? mine : "")[0];
}

bool holds_on_first(Communicator& communicator, Device& device, bool mine) {
  return !told_by_first(communicator, device, mine ? "yes" : "").empty();
}

void require_same_directory(const std::filesystem::path& run, const std::string& lock) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kSeenWithin(60);  // NFS asks its server anew after at most a minute
  const Clock::time_point start = Clock::now();
  while (lock_text(run).value_or("") != lock) {
    if (interrupted()) throw Interrupted();
    if (Clock::now() - start > kSeenWithin) {
      throw_user_error(
          "{} is not the folder that rank 0 has made under this name; each rank saves the state of its own workers, so "
          "give an --out that lies on a file system of all machines",
          std::filesystem::absolute(run).string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace dgc
