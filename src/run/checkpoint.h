#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "run/manifest.h"
#include "run/safetensors.h"

namespace dgc {

std::string worker_file(int64_t worker);  // "worker-0000.safetensors"
inline constexpr const char* kSharedFile = "optimizer.safetensors";
inline constexpr const char* kCheckpoints = "checkpoints";  // a run's folder of them
inline constexpr const char* kSound = "sound";              // of a manifest's values; false: made while a run diverged

// RUN/checkpoints/step-000001200/
//   weights.safetensors      parameters and averaged BatchNorm statistics, by PyTorch's names
//   optimizer.safetensors    what all replicas share
//   worker-0000.safetensors  what one worker has for itself: u, v, its BatchNorm statistics
//   manifest.json            step, schedule state, and size and XXH64 of every file
//   manifest.xxh64           of manifest.json: so that no byte of a checkpoint can change unseen
//
// Workers are numbered over all ranks. A checkpoint is written to RUN/checkpoints/.saving, synced, and then renamed:
// under its own name it is whole or absent.
class CheckpointStore {
 public:
  explicit CheckpointStore(const std::filesystem::path& run);

  // Saving, in this order; begin() and commit() by one rank, write() by any number of them in between. They throw
  // UserError, and discard() then makes room again: the earlier checkpoints are untouched.
  void begin() const;
  ManifestFile write(const std::string& name, const std::vector<TensorSource>& tensors, Device&) const;
  // Then deletes any of a later step, which a resumed run has passed over, and all but the newest `keep`, at least 1,
  // and the newest sound one: what a run saves while it diverges takes the place of nothing that is worth going back
  // to.
  void commit(const Manifest& manifest, int64_t keep) const;
  void discard() const noexcept;

  // Newest first. Throws UserError where there is a folder that cannot be read: it may hold some.
  std::vector<std::filesystem::path> list() const;
  std::optional<std::filesystem::path> newest_sound() const;  // by the manifests alone

 private:
  std::filesystem::path root_;
  std::filesystem::path saving_;
};

// A checkpoint opened for reading.
class Checkpoint {
 public:
  // Reads the manifest and verifies every file. Throws UserError that names the first damaged one.
  explicit Checkpoint(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  SafetensorsFile open(const std::string& name) const;  // verified again

 private:
  std::string read(const ManifestFile& file) const;

  std::filesystem::path path_;
  Manifest manifest_;
};

// The newest checkpoint that is whole, with a warning in the log for every damaged one that was passed over; none when
// there is no checkpoint at all. Throws UserError when there are some but all are damaged.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& run);

}  // namespace dgc
