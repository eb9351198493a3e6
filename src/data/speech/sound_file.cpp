#include "data/speech/sound_file.h"

#include <fcntl.h>
#include <sndfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "data/speech/bad_example.h"
#include "data/speech/sound_header.h"

namespace dgc {

struct SoundFile::Memory {
  std::span<const uint8_t> bytes;
  sf_count_t at = 0;

  sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }
};

namespace {

// libsndfile's view of a file in memory. Memory is private to SoundFile, hence the template.
template <typename Memory>
SF_VIRTUAL_IO memory_io() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* user) { return static_cast<Memory*>(user)->size(); };
  io.tell = [](void* user) { return static_cast<Memory*>(user)->at; };
  io.seek = [](sf_count_t offset, int whence, void* user) {
    auto& memory = *static_cast<Memory*>(user);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? memory.at : memory.size();
    sf_count_t to = 0;  // the offset may be any number in a damaged header
    if (__builtin_add_overflow(base, offset, &to)) to = offset < 0 ? 0 : memory.size();
    memory.at = std::clamp<sf_count_t>(to, 0, memory.size());
    return memory.at;
  };
  io.read = [](void* to, sf_count_t count, void* user) {
    auto& memory = *static_cast<Memory*>(user);
    const sf_count_t got = std::clamp<sf_count_t>(count, 0, memory.size() - memory.at);
    if (got > 0) std::memcpy(to, memory.bytes.data() + memory.at, static_cast<size_t>(got));
    memory.at += got;
    return got;
  };
  io.write = [](const void*, sf_count_t, void*) { return sf_count_t{0}; };
  return io;
}

bool is_readable_kind(int format) {
  const int kind = format & SF_FORMAT_TYPEMASK;
  return kind == SF_FORMAT_WAV || kind == SF_FORMAT_WAVEX || kind == SF_FORMAT_FLAC || kind == SF_FORMAT_NIST;
}

[[noreturn]] void refuse_empty(const std::string& name) {
  throw_bad_example("{}: the file is empty; remove it, or get it again", name);
}

}  // namespace

SoundFile::SoundFile(const std::string& path) : name_(path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_bad_example("{}: cannot open it: {}", path, std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0) {
    close(descriptor);
    refuse_empty(path);
  }
  SF_INFO info{};
  // sf_open_fd closes the descriptor, on an error too.
  examine(sf_open_fd(descriptor, SFM_READ, &info, SF_TRUE), &info);
}

SoundFile::SoundFile(std::span<const uint8_t> bytes, const std::string& name)
    : name_(name), memory_(std::make_unique<Memory>(Memory{bytes})) {
  if (bytes.empty()) refuse_empty(name);
  if (!is_sound(bytes)) {
    throw_bad_example("{}: this is no WAV, FLAC or SPHERE file; convert it to one of them", name);
  }
  if (const uint64_t missing = missing_bytes(bytes); missing > 0) {
    throw_bad_example("{}: the file is truncated: {} bytes that its header promises are not there; get it again", name,
                      missing);
  }
  SF_INFO info{};
  SF_VIRTUAL_IO io = memory_io<Memory>();
  examine(sf_open_virtual(&io, SFM_READ, &info, memory_.get()), &info);
}

SoundFile::~SoundFile() { sf_close(static_cast<SNDFILE*>(handle_)); }

void SoundFile::examine(void* handle, const void* sf_info) {
  if (handle == nullptr) {
    throw_bad_example("{}: this is no WAV, FLAC or SPHERE file that can be read; convert it to one, or get it again",
                      name_);
  }
  const auto& info = *static_cast<const SF_INFO*>(sf_info);
  const auto refuse = [&](const std::string& why) {
    sf_close(static_cast<SNDFILE*>(handle));
    throw_bad_example("{}: {}", name_, why);
  };
  if (!is_readable_kind(info.format)) refuse("this is no WAV, FLAC or SPHERE file; convert it to one of them");
  if (info.channels != 1) refuse(fmt::format("it has {} channels; convert it to mono", info.channels));
  if (info.samplerate < 1) refuse("its header gives no sample rate; convert it again");
  handle_ = handle;
  rate_ = info.samplerate;
  constexpr sf_count_t kUnknown = SF_COUNT_MAX;
  samples_ = info.frames == kUnknown ? 0 : std::max<sf_count_t>(info.frames, 0);
}

int64_t SoundFile::read(float* out, int64_t count) {
  auto* handle = static_cast<SNDFILE*>(handle_);
  const int64_t got = sf_readf_float(handle, out, count);
  if (sf_error(handle) != SF_ERR_NO_ERROR) {
    throw_bad_example("{}: the file is damaged ({}); get it again", name_, sf_strerror(handle));
  }
  return std::max<int64_t>(got, 0);
}

}  // namespace dgc
