#include "data/speech/sound_file.h"

#include <fcntl.h>
#include <sndfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/speech/bad_example.h"
#include "data/speech/sound_header.h"
#include "tensor/counted.h"
#include "tensor/errors.h"
#include "tensor/file_descriptor.h"

namespace dgc {

// What libsndfile sees: the head, then the body.
struct SoundFile::Content {
  SoundBytes file;
  SoundParts parts;
  sf_count_t at = 0;
  std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> handle{nullptr, sf_close};

  sf_count_t size() const { return std::ssize(parts.head) + static_cast<sf_count_t>(parts.body_bytes); }
  sf_count_t read(void* to, sf_count_t most);
};

sf_count_t SoundFile::Content::read(void* to, sf_count_t most) {
  const auto wanted = static_cast<size_t>(std::clamp<sf_count_t>(most, 0, size() - at));
  const auto begin = static_cast<size_t>(at), head = parts.head.size();
  const size_t from_head = begin < head ? std::min(wanted, head - begin) : 0;
  if (from_head > 0) std::memcpy(to, parts.head.data() + begin, from_head);
  size_t got = from_head;
  if (wanted > got) {
    got += file.read(parts.body + begin + from_head - head, static_cast<char*>(to) + got, wanted - got);
  }
  at += static_cast<sf_count_t>(got);
  return static_cast<sf_count_t>(got);
}

namespace {

// Content is private to SoundFile, hence the template.
template <typename Content>
SF_VIRTUAL_IO content_io() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* user) { return static_cast<Content*>(user)->size(); };
  io.tell = [](void* user) { return static_cast<Content*>(user)->at; };
  io.seek = [](sf_count_t offset, int whence, void* user) {
    auto& content = *static_cast<Content*>(user);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? content.at : content.size();
    sf_count_t to = 0;  // the offset may be any number in a damaged header
    if (__builtin_add_overflow(base, offset, &to)) to = offset < 0 ? 0 : content.size();
    content.at = std::clamp<sf_count_t>(to, 0, content.size());
    return content.at;
  };
  io.read = [](void* to, sf_count_t most, void* user) { return static_cast<Content*>(user)->read(to, most); };
  io.write = [](const void*, sf_count_t, void*) { return sf_count_t{0}; };
  return io;
}

bool is_readable_kind(int format) {
  const int kind = format & SF_FORMAT_TYPEMASK;
  return kind == SF_FORMAT_WAV || kind == SF_FORMAT_WAVEX || kind == SF_FORMAT_FLAC || kind == SF_FORMAT_NIST;
}

}  // namespace

SoundFile::SoundFile(const std::string& path) : name_(path) {
  // Does not wait for the writer of a named pipe.
  const auto file = std::make_shared<FileDescriptor>(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!*file || fstat(file->get(), &status) != 0) {
    throw_bad_example("{}: cannot open it: {}", path, error_text());
  }
  if (!S_ISREG(status.st_mode)) throw_bad_example("{}: cannot open it: this is not a regular file", path);
  show({static_cast<uint64_t>(status.st_size), [file](uint64_t at, void* to, size_t count) {
          const ssize_t got = pread(file->get(), to, count, static_cast<off_t>(at));
          return static_cast<size_t>(std::max<ssize_t>(got, 0));
        }});
}

SoundFile::SoundFile(std::span<const uint8_t> bytes, const std::string& name) : name_(name) {
  show({bytes.size(), [bytes](uint64_t at, void* to, size_t count) {
          const size_t got = at < bytes.size() ? std::min(count, bytes.size() - static_cast<size_t>(at)) : 0;
          if (got > 0) std::memcpy(to, bytes.data() + at, got);
          return got;
        }});
}

void SoundFile::show(SoundBytes file) {
  if (file.size == 0) throw_bad_example("{}: the file is empty; remove it, or get it again", name_);
  if (!is_sound(file)) {
    throw_bad_example("{}: this is no WAV, FLAC or SPHERE file; convert it to one of them", name_);
  }
  if (is_shortened(file)) {
    throw_bad_example("{}: it is compressed with Shorten, which is not read; unpack it, with sph2pipe or ffmpeg",
                      name_);
  }
  SoundParts parts = parts_of(file);
  if (parts.missing > 0) {
    throw_bad_example("{}: the file is truncated: it lacks {} that its header promises; get it again", name_,
                      counted(static_cast<int64_t>(parts.missing), "byte"));
  }
  content_.reset(new Content{std::move(file), std::move(parts)});
  SF_INFO info{};
  SF_VIRTUAL_IO io = content_io<Content>();
  content_->handle.reset(sf_open_virtual(&io, SFM_READ, &info, content_.get()));
  if (content_->handle == nullptr) {
    throw_bad_example("{}: this is no WAV, FLAC or SPHERE file that can be read; convert it to one, or get it again",
                      name_);
  }
  const auto refuse = [&](const std::string& why) { throw_bad_example("{}: {}", name_, why); };
  if (!is_readable_kind(info.format)) refuse("this is no WAV, FLAC or SPHERE file; convert it to one of them");
  if (info.channels != 1) refuse(fmt::format("it has {} channels; convert it to mono", info.channels));
  if (info.samplerate < 1) refuse("its header gives no sample rate; convert it again");
  rate_ = info.samplerate;
  constexpr sf_count_t kUnknown = SF_COUNT_MAX;
  samples_ = info.frames == kUnknown ? 0 : std::max<sf_count_t>(info.frames, 0);
}

SoundFile::~SoundFile() = default;

int64_t SoundFile::read(float* out, int64_t count) {
  SNDFILE* const handle = content_->handle.get();
  const int64_t got = sf_readf_float(handle, out, count);
  if (sf_error(handle) != SF_ERR_NO_ERROR) {
    throw_bad_example("{}: the file is damaged ({}); get it again", name_, sf_strerror(handle));
  }
  return std::max<int64_t>(got, 0);
}

}  // namespace dgc
