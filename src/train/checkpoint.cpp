#include "train/checkpoint.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kManifestHash = "manifest.xxh64";
constexpr const char* kPrefix = "step-";

void remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) throw_user_error("cannot remove {}: {}", folder.string(), error.message());
}

}  // namespace

std::string worker_file(int64_t worker) { return fmt::format("worker-{:04}.safetensors", worker); }

CheckpointStore::CheckpointStore(const fs::path& run) : root_(run / "checkpoints"), saving_(root_ / ".saving") {}

void CheckpointStore::begin() const {
  remove_folder(saving_);  // what a killed save left
  std::error_code error;
  fs::create_directories(saving_, error);
  if (error) throw_user_error("cannot create {}: {}", saving_.string(), error.message());
}

ManifestFile CheckpointStore::write(const std::string& name, const std::vector<TensorSource>& tensors,
                                    Device& device) const {
  const FileWriter::Written written = write_safetensors(saving_ / name, tensors, {{"format", "pt"}}, device);
  return {name, written.bytes, written.xxh64};
}

void CheckpointStore::commit(const Manifest& manifest, int64_t keep) const {
  const std::string text = to_manifest_json(manifest);
  write_file(saving_ / kManifest, text);
  write_file(saving_ / kManifestHash, xxh64_hex(text.data(), text.size()));
  sync_directory(saving_);

  const fs::path target = root_ / fmt::format("{}{:09}", kPrefix, manifest.step);
  // What is not older than this one was passed over as damaged when the run was resumed. Counted among the newest, it
  // would push out good ones.
  std::vector<fs::path> older = list();
  while (!older.empty() && older.front() >= target) {
    remove_folder(older.front());
    older.erase(older.begin());
  }
  std::error_code error;
  fs::rename(saving_, target, error);
  if (error) throw_user_error("cannot rename {} to {}: {}", saving_.string(), target.string(), error.message());
  sync_directory(root_);
  for (size_t i = static_cast<size_t>(keep) - 1; i < older.size(); ++i) {
    fs::remove_all(older[i], error);
    if (error) spdlog::warn("cannot remove {}: {}", older[i].string(), error.message());
  }
}

void CheckpointStore::discard() const noexcept {
  std::error_code ignored;
  fs::remove_all(saving_, ignored);
}

std::vector<fs::path> CheckpointStore::list() const {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root_, none)) {
    if (entry.path().filename().string().starts_with(kPrefix)) found.push_back(entry.path());
  }
  std::ranges::sort(found, std::greater<>());
  return found;
}

Checkpoint::Checkpoint(fs::path path) : path_(std::move(path)) {
  const std::string text = read_file(path_ / kManifest);
  if (read_file(path_ / kManifestHash) != xxh64_hex(text.data(), text.size())) {
    throw_user_error("{} is damaged: it does not match {}", (path_ / kManifest).string(), kManifestHash);
  }
  manifest_ = parse_manifest(text, (path_ / kManifest).string());
  for (const ManifestFile& file : manifest_.files) read(file);
}

std::string Checkpoint::read(const ManifestFile& file) const {
  const fs::path path = path_ / file.name;
  std::string bytes = read_file(path);
  if (bytes.size() != file.bytes) {
    throw_user_error("{} is damaged: it has {} bytes instead of {}", path.string(), bytes.size(), file.bytes);
  }
  if (xxh64_hex(bytes.data(), bytes.size()) != file.xxh64) {
    throw_user_error("{} is damaged: its checksum is not the one in {}", path.string(), kManifest);
  }
  return bytes;
}

SafetensorsFile Checkpoint::open(const std::string& name) const {
  const auto found = std::ranges::find(manifest_.files, name, &ManifestFile::name);
  if (found == manifest_.files.end()) throw_user_error("checkpoint {} has no file {}", path_.string(), name);
  return {read(*found), (path_ / name).string()};
}

std::optional<Checkpoint> newest_checkpoint(const fs::path& run) {
  const std::vector<fs::path> all = CheckpointStore(run).list();
  for (const fs::path& path : all) {
    try {
      return Checkpoint(path);
    } catch (const UserError& error) {
      spdlog::warn("passing over a checkpoint: {}", error.what());
    }
  }
  if (!all.empty()) throw_user_error("none of the {} checkpoints in {} is whole", all.size(), run.string());
  return std::nullopt;
}

}  // namespace dgc
