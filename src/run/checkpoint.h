#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/manifest.h"
#include "run/safetensors.h"

namespace dgc {

std::string worker_file(int64_t worker);  // "worker-0000.safetensors"
inline constexpr const char* kWeightsFile = "weights.safetensors";
inline constexpr const char* kSharedFile = "optimizer.safetensors";
inline constexpr const char* kCheckpoints = "checkpoints";  // the folder of a run's checkpoints

// Keys of Manifest::values.
inline constexpr const char* kArithmetic = "arithmetic";           // Backend::arithmetic()
inline constexpr const char* kTrainingSet = "training_set_xxh64";  // a checksum of what tells the set from others

// RUN/checkpoints/step-000001200/
//   weights.safetensors      parameters and averaged BatchNorm statistics, by PyTorch's names
//   optimizer.safetensors    what all replicas share
//   worker-0000.safetensors  what one worker has for itself: u, v, its BatchNorm statistics
//   manifest.json            step, schedule state, and size and XXH64 of every file
//   manifest.xxh64           XXH64 of manifest.json, so that no byte of a checkpoint can change unseen
//
// Workers are numbered over all ranks. A checkpoint is written to RUN/checkpoints/.saving-1200, synced, and then
// renamed: under its own name it is whole or absent.
class CheckpointStore {
 public:
  // `before_saving` is called by begin() with the step, and may throw UserError.
  using BeforeSaving = std::function<void(int64_t step)>;
  explicit CheckpointStore(const std::filesystem::path& run, BeforeSaving before_saving = {});

  // To save, one rank calls begin(), then any number of ranks call write(), then one rank calls commit(). All three
  // throw UserError. After a failure discard() removes what was written; the earlier checkpoints are untouched.
  void begin(int64_t step) const;
  ManifestFile write(int64_t step, const std::string& name, const std::vector<TensorSource>& tensors, Device&) const;
  // Throws UserError unless this process sees all files. Deletes checkpoints of the same or a later step, and those
  // that a resumed run has passed over, and renames the saved one to its own name. Then deletes all but the newest
  // `keep` (at least 1), the newest sound one, so that what a run saves while it diverges displaces no checkpoint worth
  // going back to, and the one that the manifest calls the best.
  void commit(const Manifest& manifest, int64_t keep);
  void discard(int64_t step) const noexcept;

  // Says that the run goes on from the checkpoint of this step, and has passed over the newer ones.
  void pass_over_newer(int64_t step) { resumed_at_ = step; }

  // Deletes all checkpoints, also unfinished ones, and then their folder, unless people keep something else in it.
  // Throws UserError.
  void remove_all() const;

  // Gives the checkpoints their names back that a save was about to replace when it was killed, where the file system
  // cannot exchange two names. To be called while nobody saves. Throws UserError.
  void restore_replaced() const;
  // Whether the checkpoints' folder is a link to what is not there, as a disk that is not mounted.
  bool is_away() const;

  // All checkpoints, newest first. Throws UserError when their folder cannot be read.
  std::vector<std::filesystem::path> list() const;
  std::optional<std::filesystem::path> newest_sound() const;  // reads only the manifests

 private:
  std::filesystem::path saving(int64_t step) const;
  std::vector<std::filesystem::path> unfinished() const;  // what saves that were killed have left behind

  BeforeSaving before_saving_;
  std::filesystem::path root_;
  std::optional<int64_t> resumed_at_;  // until the first checkpoint of this process
};

// A checkpoint opened for reading.
class Checkpoint {
 public:
  // Reads the manifest and verifies every file. Throws UserError that names the first damaged one.
  explicit Checkpoint(std::filesystem::path path);
  // Reads the manifest alone, for a rank of many that reads only some of the files. Throws UserError where it is
  // damaged.
  static Checkpoint unverified(std::filesystem::path path);
  // Verifies the weights alone, for those who need no more than the model. Throws as the constructor does.
  static Checkpoint with_weights(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  SafetensorsFile open(const std::string& name) const;  // verifies the file, also one that was verified before

 private:
  Checkpoint(std::filesystem::path path, Manifest manifest);
  std::string read(const ManifestFile& file) const;

  std::filesystem::path path_;
  Manifest manifest_;
};

// The newest checkpoint that is whole, every file of it, with a warning in the log for every damaged one that was
// passed over; none when there is no checkpoint at all. Throws UserError when there are some but all are damaged, when
// the newest that is not damaged cannot be read or is of another version, and where their folder is_away(). Beside a
// training that goes on this and the functions below look again where it has removed what they were reading.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& run);

// For those who need no more than the model, so that its weights alone are read and verified: the newest checkpoint,
// and the one of the step that the newest calls the best. Both throw as newest_checkpoint() does, and UserError where
// there is none, or the run keeps no best one.
Checkpoint newest_model(const std::filesystem::path& run);
Checkpoint best_model(const std::filesystem::path& run);

}  // namespace dgc
