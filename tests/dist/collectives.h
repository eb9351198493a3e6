#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "dist/communicator.h"

// What every communicator has to do: bodies that all ranks run, on whatever carries them. Each returns how many numbers
// were wrong on this rank.
namespace dgc::test {

// Worker w's element i; distinct for all that the tests make.
inline float element(size_t worker, size_t i) { return static_cast<float>(worker * 100000 + i + 1); }

inline Buffer floats(const std::shared_ptr<Device>& device, const std::vector<float>& values) {
  Buffer buffer(device, values.size() * sizeof(float));
  device->copy_in(buffer.data(), values.data(), buffer.bytes());
  return buffer;
}

inline std::vector<float> values_of(const Buffer& buffer) {
  std::vector<float> values(buffer.bytes() / sizeof(float));
  buffer.device().copy_out(values.data(), buffer.data(), buffer.bytes());
  return values;
}

// all_gather puts parts of `count` floats in rank order.
inline int wrong_in_all_gather(Communicator& c, const std::shared_ptr<Device>& device, size_t count) {
  const auto rank = static_cast<size_t>(c.rank()), size = static_cast<size_t>(c.size());
  Buffer all = floats(device, std::vector<float>(count * size + 1, -1));
  int wrong = 0;
  for (size_t round = 0; round < 20; ++round) {
    Buffer mine = floats(device, std::vector<float>(count, element(rank, round)));
    c.all_gather(*device, mine.data(), all.data(), mine.bytes());
    device->copy_in(mine.data(), std::vector<float>(count, -5).data(), mine.bytes());  // it may be written over
    const auto got = values_of(all);
    for (size_t i = 0; i < count * size; ++i) wrong += got[i] != element(i / count, round);
    wrong += got.back() != -1;  // nothing behind the last part
  }
  return wrong;
}

// all_gather_host does the same from host memory.
inline int wrong_in_all_gather_host(Communicator& c, const std::shared_ptr<Device>& device, size_t count) {
  int wrong = 0;
  for (int round = 0; round < 5; ++round) {
    const std::vector<int> mine(count, c.rank() * 100 + round);
    std::vector<int> all(count * static_cast<size_t>(c.size()), -1);
    all_gather_host(c, *device, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    for (size_t i = 0; i < all.size(); ++i) wrong += all[i] != static_cast<int>(i / count) * 100 + round;
  }
  return wrong;
}

constexpr size_t kAllWorkers = 12;  // so that 1, 2, 3, 4, 6 and 12 ranks share them evenly

// gather_shards brings each rank its shard of n floats of all workers, in worker order.
inline int wrong_in_gather_shards(Communicator& c, const std::shared_ptr<Device>& device, size_t n) {
  const auto rank = static_cast<size_t>(c.rank()), local = kAllWorkers / static_cast<size_t>(c.size());
  const size_t row = shard_size(n, c.size());
  std::vector<Buffer> buffers;
  std::vector<const float*> mine;
  for (size_t w = rank * local; w < (rank + 1) * local; ++w) {
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = element(w, i);
    mine.push_back(buffers.emplace_back(floats(device, values)).f32());
  }
  const Buffer shards = floats(device, std::vector<float>(kAllWorkers * row + 1, -1));
  int wrong = 0;
  for (int round = 0; round < 3; ++round) {
    c.gather_shards(*device, mine, shards.f32(), n);
    const auto got = values_of(shards);
    for (size_t w = 0; w < kAllWorkers; ++w) {
      for (size_t i = 0; i < row && rank * row + i < n; ++i) wrong += got[w * row + i] != element(w, rank * row + i);
    }
    wrong += got.back() != -1;
  }
  return wrong;
}

// Ranks among themselves: neighbours, and those as far apart. Each brings its own number.
inline int wrong_in_parts(Communicator& c, const std::shared_ptr<Device>& device) {
  int wrong = 0;
  for (int size = 1; size <= c.size(); ++size) {
    if (c.size() % size != 0) continue;
    for (const Ranks& ranks : {Ranks{c.rank() / size * size, size, 1}, Ranks{c.rank() % size, c.size() / size, size}}) {
      const auto part = c.split(ranks);
      wrong += part->size() != ranks.size || ranks.at(part->rank()) != c.rank() || part->name() != c.name();
      const auto count = static_cast<size_t>(ranks.size);
      const size_t row = shard_size(20, ranks.size);
      std::vector<float> values(20);
      for (size_t i = 0; i < 20; ++i) values[i] = element(static_cast<size_t>(c.rank()), i);
      const Buffer mine = floats(device, values);
      const Buffer all = floats(device, std::vector<float>(20 * count + 1, -1));
      const Buffer shards = floats(device, std::vector<float>(row * count + 1, -1));
      const float* workers[] = {mine.f32()};
      part->all_gather(*device, mine.data(), all.data(), mine.bytes());
      part->gather_shards(*device, workers, shards.f32(), 20);
      part->barrier(*device);
      const auto parts = values_of(all), rows = values_of(shards);
      const auto first = static_cast<size_t>(part->rank()) * row;
      for (int i = 0; i < ranks.size; ++i) {
        const auto at = static_cast<size_t>(i), from = static_cast<size_t>(ranks.at(i));
        for (size_t e = 0; e < 20; ++e) wrong += parts[at * 20 + e] != element(from, e);
        for (size_t e = 0; e < row && first + e < 20; ++e) wrong += rows[at * row + e] != element(from, first + e);
      }
      wrong += parts.back() != -1 || rows.back() != -1;
    }
  }
  return wrong;
}

// Letters of several sizes from every rank to every other one, which takes them one sender after another.
inline int wrong_in_mail(Communicator& c, const std::shared_ptr<Device>& device) {
  constexpr std::array<size_t, 4> kSizes = {0, 1, 1000, 300'000};
  const auto letter = [&](int from, int to, size_t size) {
    return std::vector<std::byte>(size, static_cast<std::byte>(1 + 16 * from + to));
  };
  Mail* const mail = c.mail();
  if (mail == nullptr) return 1;
  for (const size_t size : kSizes) {
    for (int to = 0; to < c.size(); ++to) {
      if (to == c.rank()) continue;
      mail->post(to, std::make_shared<const std::vector<std::byte>>(letter(c.rank(), to, size)));
    }
  }
  int wrong = 0;
  for (int from = c.size(); from-- > 0;) {
    if (from == c.rank()) continue;
    for (const size_t size : kSizes) {
      std::optional<std::vector<std::byte>> got;
      while (!(got = mail->take(from))) std::this_thread::yield();
      wrong += *got != letter(from, c.rank(), size);
    }
    wrong += mail->take(from).has_value();
  }
  for (int to = 0; to < c.size(); ++to) {
    while (to != c.rank() && mail->unsent(to) > 0) std::this_thread::yield();
  }
  c.barrier(*device);
  return wrong;
}

// Rank 1 makes another call than the others; `what` says which way. Throws InternalError on every rank.
inline void disagree(Communicator& c, const std::shared_ptr<Device>& device, int what) {
  const Buffer x(device, 256), y(device, 1024);
  const float* workers[] = {x.f32(), x.f32()};
  const bool odd = c.rank() == 1;
  if (what == 0) c.all_gather(*device, x.data(), y.data(), odd ? 4 : 8);
  if (what == 1) c.gather_shards(*device, workers, y.f32(), odd ? 7 : 8);
  if (what == 2) c.gather_shards(*device, std::span(workers, odd ? 1 : 2), y.f32(), 8);
}

}  // namespace dgc::test
