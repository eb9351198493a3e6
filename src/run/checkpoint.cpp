#include "run/checkpoint.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "run/file_io.h"
#include "run/run_state.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kManifestHash = "manifest.xxh64";
constexpr const char* kSaving = ".saving";
constexpr const char* kReplaced = "-replaced";  // behind a name that begins with kSaving
constexpr std::string_view kPrefix = "step-";
constexpr uint64_t kMostManifestBytes = 1 << 26;

std::string folder_of(int64_t step) { return fmt::format("{}{:09}", kPrefix, step); }

// The step of a checkpoint's folder. Nothing for any other name: people keep copies and notes beside checkpoints.
std::optional<int64_t> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  int64_t step = 0;
  if (name.starts_with(kPrefix)) std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return name == folder_of(step) ? std::optional(step) : std::nullopt;
}

void remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) throw_user_error("cannot remove {}: {}", folder.string(), error.message());
}

void rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw_user_error("cannot rename {} to {}: {}", from.string(), to.string(), error.message());
}

// Gives a folder a name that another one may have, which is then removed. Where the file system can exchange names, one
// of the two has the name at any moment. Elsewhere neither has it for the time between two renames.
void put_in_place(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return remove_folder(from);
  std::error_code error;
  if (!fs::exists(to, error)) return rename_folder(from, to);
  const fs::path old = from.string() + kReplaced;
  rename_folder(to, old);
  try {
    rename_folder(from, to);
  } catch (const UserError&) {
    rename_folder(old, to);
    throw;
  }
  remove_folder(old);
}

// What is not as a save has left it, and will not be again, unlike what the system does not let this process read now.
struct Damage : UserError {
  using UserError::UserError;
};

template <typename... Args>
[[noreturn]] void throw_damage(fmt::format_string<Args...> format, Args&&... args) {
  throw Damage(fmt::format(format, std::forward<Args>(args)...));
}

// Throws Damage where there is no regular file of at most `most` bytes.
std::string read_saved(const fs::path& path, uint64_t most) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw_damage("{} is not there", path.string());
  if (status.type() == fs::file_type::directory) throw_damage("{} is a folder", path.string());
  if (const uintmax_t size = fs::file_size(path, error); !error && size > most) {
    throw_damage("{} has {} bytes, more than the {} that such a file may have", path.string(), size, most);
  }
  return read_file(path, most);
}

Manifest read_manifest(const fs::path& checkpoint) {
  refuse_broken_link(checkpoint);
  const fs::path path = checkpoint / kManifest;
  const std::string text = read_saved(path, kMostManifestBytes);
  if (read_saved(checkpoint / kManifestHash, kMostManifestBytes) != xxh64_hex(text)) {
    throw_damage("{} is damaged: it does not match {}", path.string(), kManifestHash);
  }
  return parse_manifest(text, path.string());
}

bool is_sound(const fs::path& checkpoint) {
  try {
    return read_run_state(read_manifest(checkpoint), checkpoint.string()).sound;
  } catch (const UserError&) {
    return false;  // it is damaged
  }
}

}  // namespace

std::string worker_file(int64_t worker) { return fmt::format("worker-{:04}.safetensors", worker); }

CheckpointStore::CheckpointStore(const fs::path& run, BeforeSaving before_saving)
    : before_saving_(std::move(before_saving)), root_(run / kCheckpoints) {}

// Each step has a name of its own, because a network file system may take the folder of the last save, renamed since,
// for the one of this name.
fs::path CheckpointStore::saving(int64_t step) const { return root_ / fmt::format("{}-{}", kSaving, step); }

std::vector<fs::path> CheckpointStore::unfinished() const {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(root_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(kSaving)) found.push_back(it->path());
  }
  return found;
}

bool CheckpointStore::is_away() const { return is_broken_link(root_); }

void CheckpointStore::restore_replaced() const {
  for (const fs::path& folder : unfinished()) {
    const std::string name = folder.filename().string();
    if (!name.ends_with(kReplaced)) continue;
    int64_t step = 0;
    std::from_chars(name.data() + std::string_view(kSaving).size() + 1, name.data() + name.size(), step);
    const fs::path own = root_ / folder_of(step);
    std::error_code error;
    if (saving(step).string() + kReplaced == folder.string() && !fs::exists(own, error)) rename_folder(folder, own);
  }
}

void CheckpointStore::begin(int64_t step) const {
  if (before_saving_) before_saving_(step);
  std::ranges::for_each(unfinished(), remove_folder);
  make_directory(saving(step));
}

ManifestFile CheckpointStore::write(int64_t step, const std::string& name, const std::vector<TensorSource>& tensors,
                                    Device& device) const {
  const FileWriter::Written written = write_safetensors(saving(step) / name, tensors, {{"format", "pt"}}, device);
  return {name, written.bytes, written.xxh64};
}

void CheckpointStore::commit(const Manifest& manifest, int64_t keep) {
  const fs::path saving = this->saving(manifest.step);
  const int64_t best_kept = read_run_state(manifest, saving.string()).best_kept;
  std::error_code error;
  for (const ManifestFile& file : manifest.files) {
    if (fs::file_size(saving / file.name, error) == file.bytes && !error) continue;
    throw_user_error("{} is not there as a rank has written it: all machines have to see the same files",
                     (saving / file.name).string());
  }
  const std::string text = to_manifest_json(manifest);
  write_file(saving / kManifest, text);
  write_file(saving / kManifestHash, xxh64_hex(text));
  sync_directory(saving);

  const fs::path target = root_ / folder_of(manifest.step);
  // Checkpoints that are newer than the one from which the run was resumed were passed over as damaged. If they counted
  // among the newest, they would push out good ones.
  const int64_t passed_over = std::min(manifest.step, resumed_at_.value_or(manifest.step) + 1);
  std::vector<fs::path> all = list();
  while (!all.empty() && step_of(all.front()) >= passed_over) {
    if (all.front() != target) remove_folder(all.front());
    all.erase(all.begin());
  }
  put_in_place(saving, target);
  resumed_at_.reset();
  sync_directory(root_);
  sync_directory(root_.parent_path());
  all.insert(all.begin(), target);
  const auto sound = std::ranges::find_if(all, is_sound);
  const auto best = std::ranges::find(all, root_ / folder_of(best_kept));
  for (auto path = all.begin() + std::min(keep, std::ssize(all)); path != all.end(); ++path) {
    if (path == sound || path == best) continue;
    fs::remove_all(*path, error);
    if (error) spdlog::warn("cannot remove {}: {}", path->string(), error.message());
  }
}

void CheckpointStore::discard(int64_t step) const noexcept {
  std::error_code ignored;
  fs::remove_all(saving(step), ignored);
}

void CheckpointStore::remove_all() const {
  const std::vector<fs::path> all = list();
  std::for_each(all.rbegin(), all.rend(), remove_folder);  // the newest last, as one may refuse to go
  std::ranges::for_each(unfinished(), remove_folder);
  // A link to a folder elsewhere stays, unless nothing is there.
  std::error_code error;
  if (is_away()) fs::remove(root_, error);
  if (::rmdir(root_.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
    return;
  throw_user_error("cannot remove {}: {}", root_.string(), error_text());
}

std::vector<fs::path> CheckpointStore::list() const {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(root_, error), end; !error && it != end; it.increment(error)) {
    if (step_of(it->path())) found.push_back(it->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_user_error("{}: cannot list the folder: {}", root_.string(), error.message());
  }
  std::ranges::sort(found, std::greater<>(), step_of);
  return found;
}

std::optional<fs::path> CheckpointStore::newest_sound() const {
  const std::vector<fs::path> all = list();
  const auto found = std::ranges::find_if(all, is_sound);
  return found == all.end() ? std::nullopt : std::optional(*found);
}

Checkpoint::Checkpoint(fs::path path, Manifest manifest) : path_(std::move(path)), manifest_(std::move(manifest)) {}

Checkpoint Checkpoint::unverified(fs::path path) {
  Manifest manifest = read_manifest(path);
  return {std::move(path), std::move(manifest)};
}

Checkpoint::Checkpoint(fs::path path) : Checkpoint(unverified(std::move(path))) {
  for (const ManifestFile& file : manifest_.files) read(file);
}

Checkpoint Checkpoint::with_weights(fs::path path) {
  Checkpoint checkpoint = unverified(std::move(path));
  static_cast<void>(checkpoint.open(kWeightsFile));
  return checkpoint;
}

std::string Checkpoint::read(const ManifestFile& file) const {
  const fs::path path = path_ / file.name;
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (!error && size != file.bytes) {
    throw_damage("{} is damaged: it has {} bytes instead of {}", path.string(), size, file.bytes);
  }
  std::string bytes = read_saved(path, file.bytes);
  if (xxh64_hex(bytes) != file.xxh64) {
    throw_damage("{} is damaged: its checksum is not the one in {}", path.string(), kManifest);
  }
  return bytes;
}

SafetensorsFile Checkpoint::open(const std::string& name) const {
  const auto found = std::ranges::find(manifest_.files, name, &ManifestFile::name);
  if (found == manifest_.files.end()) throw_user_error("checkpoint {} has no file {}", path_.string(), name);
  return {read(*found), (path_ / name).string()};
}

namespace {

// open: throws UserError for a checkpoint that is damaged.
template <typename Open>
std::optional<Checkpoint> newest(const fs::path& run, const Open& open) {
  refuse_broken_link(run / kCheckpoints);
  const CheckpointStore store(run);
  const std::vector<fs::path> all = store.list();
  for (const fs::path& path : all) {
    try {
      return open(path);
    } catch (const UserError& error) {
      // A training that goes on has saved another one, and may have removed this one for it.
      if (store.list() != all) return newest(run, open);
      // The next save removes what is passed over, so a sound one must not be, and it may be sound.
      if (dynamic_cast<const Damage*>(&error) == nullptr) {
        throw_user_error("{}; mend that, or remove {} to go back to an older checkpoint", error.what(), path.string());
      }
      spdlog::warn("passing over a checkpoint: {}", error.what());
    }
  }
  if (!all.empty()) throw_user_error("none of the {} checkpoints in {} is whole", all.size(), run.string());
  return std::nullopt;
}

}  // namespace

std::optional<Checkpoint> newest_checkpoint(const fs::path& run) {
  return newest(run, [](const fs::path& path) { return Checkpoint(path); });
}

Checkpoint newest_model(const fs::path& run) {
  if (const std::optional<Checkpoint> found = newest(run, Checkpoint::with_weights)) return *found;
  throw_user_error("{} has no checkpoint: none is saved yet, or all were removed", run.string());
}

Checkpoint best_model(const fs::path& run) {
  const CheckpointStore store(run);
  const std::vector<fs::path> all = store.list();
  const int64_t best = read_run_state(newest_model(run)).best_kept;
  const fs::path path = run / kCheckpoints / folder_of(best);
  std::error_code error;
  try {
    if (fs::exists(path, error)) return Checkpoint::with_weights(path);
  } catch (const UserError&) {
    if (store.list() == all) throw;
  }
  if (best > 0 && store.list() != all) return best_model(run);
  throw_user_error("{} keeps no best checkpoint: train with checkpoint.best, and beyond the first evaluation",
                   run.string());
}

}  // namespace dgc
