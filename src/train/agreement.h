#pragma once

#include <filesystem>
#include <string>

#include "config/options.h"
#include "dist/communicator.h"
#include "json/lines.h"
#include "tasks/task.h"
#include "train/trainer.h"

namespace dgc {

// What must be alike on all ranks of a run. start_facts() returns it field by field, as text: program, config, options,
// data (sizes and a checksum of some images, of all words, or of all transcripts) and parameters. start_facts() throws
// UserError when an image cannot be read.
struct StartOf {
  const Config& config;
  const TrainOptions& options;
  DataView data;
};
Row start_facts(const StartOf&);
inline constexpr const char* kInitialWeights = "model.init_from, its checksum";  // a field for those who read the file

// A checksum of what start_facts() has found of the training set.
std::string training_set_xxh64(const Row& facts);

// Collective. Throws UserError, the same one on every rank, that names the first rank and field that differ from rank
// 0's.
void require_agreement(Communicator&, Device&, const Row& facts);

// Collective. Returns rank 0's text on every rank.
std::string told_by_first(Communicator&, Device&, const std::string& mine);
// Collective. Returns on every rank what holds on rank 0.
bool holds_on_first(Communicator&, Device&, bool mine);

// Throws UserError unless `run` is the folder in which rank 0's process has a RunLock of this text. It looks
// again for up to a minute, because a file system may show late what another machine has made. Throws Interrupted when
// a signal comes meanwhile.
void require_same_directory(const std::filesystem::path& run, const std::string& lock);

}  // namespace dgc
