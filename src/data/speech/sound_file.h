#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/speech/sound_header.h"

namespace dgc {

// A WAV, FLAC or SPHERE file with one channel, opened with libsndfile. The content tells the format, not the name.
// Every error is a BadExample whose message begins with the name; that the header promises more bytes than there are is
// one.
class SoundFile {
 public:
  explicit SoundFile(const std::string& path);  // reads the header alone
  // bytes: a whole file in memory that must outlive this object.
  SoundFile(std::span<const uint8_t> bytes, const std::string& name);
  ~SoundFile();
  SoundFile(const SoundFile&) = delete;
  SoundFile& operator=(const SoundFile&) = delete;

  int rate() const { return rate_; }  // samples per second
  // Samples that the header promises; 0 if the header does not say, as in a FLAC file that was written into a pipe.
  int64_t samples() const { return samples_; }
  double seconds() const { return static_cast<double>(samples_) / rate_; }
  // Writes up to `count` samples in [-1, 1] and returns how many; fewer only at the end. Throws when the file is
  // damaged.
  int64_t read(float* out, int64_t count);

 private:
  struct Content;
  void show(SoundBytes file);  // to libsndfile

  std::string name_;
  std::unique_ptr<Content> content_;
  int rate_ = 0;
  int64_t samples_ = 0;
};

}  // namespace dgc
