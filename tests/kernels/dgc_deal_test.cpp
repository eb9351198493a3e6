#include <catch.hpp>
#include <set>

#include "tests/kernels/dgc_apply_case.h"
#include "tests/kernels/kernel_backends.h"

// Split and reduce (kernels/dgc_deal.h), op by op, against the same in plain words.
using namespace dgc;
using namespace dgc::test;

namespace {

const std::vector<Size> kDealSizes = {{1, 1}, {17, 5}, {65537, 700}, {4099, 40}, {513, 513}};

struct Dealt {
  std::vector<uint32_t> rows;
  std::vector<float> v;
};

constexpr uint32_t kUntouched = 0xababababu;

Dealt deal_out(Backend& backend, DgcCase& c, const DgcDeal& deal) {
  Dealt dealt{std::vector<uint32_t>(static_cast<size_t>(deal.owners * deal.row()), kUntouched), c.v};
  std::vector<StepControl> controls(1);
  controls[0].skip = c.skip;
  const DgcTableMemory table = table_of(backend, c.segments);
  const Copy control(backend, controls);
  const Copy message(backend, c.message);
  const Copy v(backend, dealt.v);
  const Copy rows(backend, dealt.rows);
  backend.dgc_deal({table.table(), deal, control.data(), message.data(), v.data(), rows.data()});
  v.fetch(), rows.fetch();
  return dealt;
}

// By the definition: each owner's entries in the arena's order, as many as there is room for; the others go back.
Dealt deal_plainly(const DgcCase& c, const DgcDeal& deal) {
  Dealt dealt{std::vector<uint32_t>(static_cast<size_t>(deal.owners * deal.row()), kUntouched), c.v};
  for (int32_t owner = 0; owner < deal.owners; ++owner) {
    uint32_t* const row = &dealt.rows[static_cast<size_t>(owner * deal.row())];
    int32_t used = 0;
    for (const Entry& entry : entries_of(c)) {
      if (deal.place(entry.element).owner != owner) continue;
      if (used == deal.room) {
        dealt.v[static_cast<size_t>(entry.element)] += entry.value;
        continue;
      }
      row[used] = deal.place(entry.element).at;
      row[deal.room + used++] = std::bit_cast<uint32_t>(entry.value);
    }
    for (; used < deal.room; ++used) row[used] = DgcDeal::kEmpty, row[deal.room + used] = 0;
  }
  return dealt;
}

DgcDeal deal_of(const ApplyCase& c, int32_t owners, int32_t room) {
  DgcDeal deal;
  deal.extent = static_cast<int64_t>(c.sum.size());
  deal.owners = owners;
  deal.room = room;
  return deal;
}

std::vector<float> sum_dealt(Backend& backend, const DgcDeal& deal, std::vector<uint32_t> all, int32_t workers,
                             int32_t owner, int32_t skip = 0) {
  std::vector<float> shard(static_cast<size_t>(deal.shard()), kSentinel);
  std::vector<StepControl> controls(1);
  controls[0].skip = skip;
  const Copy control(backend, controls);
  const Copy rows(backend, all);
  const Copy out(backend, shard);
  backend.dgc_sum_dealt(
      {deal, control.data(), rows.data() + owner * deal.row(), deal.owners * deal.row(), workers, out.data()});
  out.fetch();
  return shard;
}

// Owners' messages: the `kept` largest of each shard of `sums`, an arena.
std::vector<DgcCase> owners_messages(const DgcDeal& deal, const std::vector<float>& sums, int64_t kept) {
  std::vector<DgcCase> messages;
  for (int32_t owner = 0; owner < deal.owners; ++owner) {
    DgcCase c({{deal.shard(), kept}});
    c.header.worker = static_cast<uint32_t>(owner);
    for (int64_t at = 0; at < deal.shard(); ++at) {
      const int64_t element = deal.element(owner, at);
      if (element < deal.extent) c.g[static_cast<size_t>(16 + at)] = sums[static_cast<size_t>(element)];
    }
    Rule rule;
    rule.momentum_correction = false;
    reference_compress(c, rule);
    messages.push_back(std::move(c));
  }
  return messages;
}

StepControl undeal(Backend& backend, const DgcDeal& deal, std::vector<DgcCase>& owners, std::vector<float>& sum,
                   int32_t skip = 0) {
  std::vector<std::byte> all;
  for (const DgcCase& owner : owners) all.insert(all.end(), owner.message.begin(), owner.message.end());
  std::vector<StepControl> controls(1);
  controls[0].step = owners[0].step;
  controls[0].skip = skip;
  const DgcTableMemory table = table_of(backend, owners[0].segments);
  const Copy control(backend, controls);
  const Copy messages(backend, all);
  const Copy out(backend, sum);
  DgcUndealArgs args;
  args.deal = deal;
  args.table = table.table();
  args.control = control.data();
  args.messages = messages.data();
  args.workers = deal.owners;
  args.header = owners[0].header;
  args.sum = out.data();
  backend.dgc_undeal(args);
  out.fetch(), control.fetch();
  return controls[0];
}

}  // namespace

TEST_CASE("every element has one owner, and owners have as many each", "[dgc]") {
  const int32_t owners = GENERATE(1, 2, 3, 7, 8, 1000);
  DgcDeal deal;
  deal.owners = owners;
  deal.extent = GENERATE(1, 31, 32, 33, 5000, 64 * 1000);
  CAPTURE(owners, deal.extent);
  std::vector<std::set<int64_t>> places(static_cast<size_t>(owners));
  std::vector<int64_t> last(static_cast<size_t>(owners), -1);
  int wrong = 0;
  for (int64_t element = 0; element < deal.extent; ++element) {
    const DgcDeal::Place place = deal.place(element);
    REQUIRE((place.owner >= 0 && place.owner < owners && place.at < deal.shard()));
    const auto owner = static_cast<size_t>(place.owner);
    wrong += deal.element(place.owner, place.at) != element;
    wrong += last[owner] >= place.at;  // in the arena's order
    last[owner] = place.at;
    wrong += !places[owner].insert(place.at).second;
  }
  CHECK(wrong == 0);
  CHECK(deal.shard() * owners >= deal.extent);
  CHECK(deal.shard() * owners < deal.extent + 32 * owners);
}

TEST_CASE("rows and columns of a tensor are shared by all owners", "[dgc]") {
  const int32_t owners = GENERATE(2, 8, 64);
  const int64_t columns = GENERATE(512, 1500, 4096);
  DgcDeal deal;
  deal.owners = owners;
  deal.extent = 4096 * columns;
  CAPTURE(owners, columns);
  std::vector<int> of_column(static_cast<size_t>(owners)), of_rows(static_cast<size_t>(owners));
  for (int64_t row = 0; row < 4096; ++row) ++of_column[static_cast<size_t>(deal.place(row * columns + 5).owner)];
  for (int64_t at = 0; at < 8 * columns; ++at) ++of_rows[static_cast<size_t>(deal.place(7 * columns + at).owner)];
  // Twice the mean is the room that there is.
  CHECK(*std::ranges::max_element(of_column) < 2 * 4096 / owners);
  CHECK(*std::ranges::max_element(of_rows) <= 8 * columns / owners + 64);
}

TEST_CASE("dgc_deal gives every owner its entries in order, and keeps what has no room", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int32_t owners = GENERATE(1, 2, 5);
  const int32_t room = GENERATE(1, 7, 300, 2000);
  CAPTURE(backend->name(), owners, room);
  ApplyCase c(kDealSizes, 1);
  DgcCase& worker = c.workers[0];
  fill_normal(worker, worker.v, 3);
  const DgcDeal deal = deal_of(c, owners, room);
  const Dealt want = deal_plainly(worker, deal);
  const Dealt got = deal_out(*backend, worker, deal);
  CHECK((got.rows == want.rows));
  CHECK((bits_of(got.v) == bits_of(want.v)));
  if (room <= 7 || owners == 1) CHECK((bits_of(got.v) == bits_of(worker.v)) == (room == 2000));

  worker.skip = 1;
  const Dealt skipped = deal_out(*backend, worker, deal);
  CHECK(std::ranges::count(skipped.rows, kUntouched) == static_cast<int64_t>(skipped.rows.size()));
  CHECK((bits_of(skipped.v) == bits_of(worker.v)));
}

TEST_CASE("dgc_deal takes thousands of entries, also from behind blocks that have none", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int32_t room = GENERATE(2000, 5000);
  CAPTURE(backend->name(), room);
  DgcCase c({{3, 3}, {5 * 65536, 9001}});
  fill_normal(c, c.g, 4);
  const auto begin = c.g.begin() + c.segments[1].offset;
  std::fill(begin + 65536, begin + 4 * 65536, 0.f);
  reference_compress(c, Rule{});
  DgcDeal deal;
  deal.extent = static_cast<int64_t>(c.v.size()), deal.owners = 2, deal.room = room;
  const Dealt want = deal_plainly(c, deal), got = deal_out(*backend, c, deal);
  CHECK((got.rows == want.rows));
  CHECK((bits_of(got.v) == bits_of(want.v)));
}

TEST_CASE("dgc_sum_dealt adds up what owners got, worker by worker", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int workers = GENERATE(1, 4);
  CAPTURE(backend->name(), workers);
  ApplyCase c(kDealSizes, workers);
  const DgcDeal deal = deal_of(c, 3, 2000);
  std::vector<uint32_t> all;
  for (const DgcCase& worker : c.workers) {
    const Dealt dealt = deal_plainly(worker, deal);
    all.insert(all.end(), dealt.rows.begin(), dealt.rows.end());
  }
  const std::vector<float> sums = c.expected_sum();
  for (int32_t owner = 0; owner < 3; ++owner) {
    const std::vector<float> shard = sum_dealt(*backend, deal, all, workers, owner);
    int wrong = 0;
    for (int64_t at = 0; at < deal.shard(); ++at) {
      const int64_t element = deal.element(owner, at);
      const float want = element < deal.extent ? sums[static_cast<size_t>(element)] : 0;
      wrong += std::bit_cast<uint32_t>(shard[static_cast<size_t>(at)]) != std::bit_cast<uint32_t>(want);
    }
    CHECK(wrong == 0);
  }
  // What came may be anything: places that there are not are left out.
  std::vector<uint32_t> hostile(all.size(), 0xfffffff0u);
  hostile[5] = static_cast<uint32_t>(deal.shard());
  CHECK(std::ranges::count(sum_dealt(*backend, deal, hostile, workers, 0), 0.f) == deal.shard());
  CHECK(std::ranges::count(sum_dealt(*backend, deal, all, workers, 0, 1), kSentinel) == deal.shard());
}

TEST_CASE("dgc_sum_dealt adds up any number of workers in their order", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int workers = GENERATE(127, 128, 129, 300);
  CAPTURE(backend->name(), workers);
  DgcDeal deal;
  deal.extent = 5000, deal.owners = 1, deal.room = 600;
  const auto row = static_cast<size_t>(deal.row()), room = static_cast<size_t>(deal.room);
  std::vector<uint32_t> all(static_cast<size_t>(workers) * row);
  std::vector<float> want(static_cast<size_t>(deal.shard()), 0);
  for (int worker = 0; worker < workers; ++worker) {
    uint32_t* const mine = &all[static_cast<size_t>(worker) * row];
    const auto sent = static_cast<size_t>(worker % 7 * 100);
    std::fill_n(mine, room, DgcDeal::kEmpty);
    for (size_t i = 0; i < sent; ++i) {
      const auto at = static_cast<uint32_t>(8 * i + static_cast<size_t>(worker % 3));  // beside many others
      const float value = static_cast<float>(worker % 2 == 0 ? 1 : -1) / static_cast<float>(worker + 1);
      mine[i] = at;
      mine[room + i] = std::bit_cast<uint32_t>(value);
      want[at] += value;
    }
  }
  CHECK((bits_of(sum_dealt(*backend, deal, all, workers, 0)) == bits_of(want)));
}

TEST_CASE("dgc_undeal puts the owners' sums where they belong", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int32_t owners = GENERATE(1, 3);
  const bool all = GENERATE(false, true);  // also the places behind the arena's end, which the last shards have
  CAPTURE(backend->name(), owners, all);
  const ApplyCase c(kDealSizes, 2);
  const DgcDeal deal = deal_of(c, owners, 1);
  const std::vector<float> sums = c.expected_sum();
  const int64_t kept = all ? deal.shard() : 300;
  std::vector<DgcCase> messages = owners_messages(deal, sums, kept);
  std::vector<float> want(sums.size(), 0);
  for (int32_t owner = 0; owner < owners; ++owner) {
    for (const Entry& e : entries_of(messages[static_cast<size_t>(owner)])) {
      const int64_t element = deal.element(owner, e.element - 16);
      if (element < deal.extent) want[static_cast<size_t>(element)] = e.value;
    }
  }
  if (!all) CHECK(std::ranges::count_if(want, [](float x) { return x != 0; }) == kept * owners);
  std::vector<float> got(sums.size(), 0);
  for (std::vector<float>* arena : {&got, &want}) arena->resize(static_cast<size_t>(deal.shard() * owners), kSentinel);
  CHECK((owners == 1 || got.size() > sums.size()));
  CHECK((undeal(*backend, deal, messages, got).fault.kind == WireFaultKind::none));
  CHECK((bits_of(got) == bits_of(want)));

  std::vector<float> untouched(sums.size(), kSentinel);
  undeal(*backend, deal, messages, untouched, 1);
  CHECK(std::ranges::count(untouched, kSentinel) == deal.extent);
  messages.back().message.back() ^= std::byte{1};
  messages.back().message[sizeof(WireHeader)] ^= std::byte{1};
  const StepControl damaged = undeal(*backend, deal, messages, untouched);
  CHECK((damaged.fault.kind == WireFaultKind::checksum));
  CHECK(damaged.fault.worker == static_cast<uint32_t>(owners - 1));
  CHECK(std::ranges::count(untouched, kSentinel) == deal.extent);
}

TEST_CASE("dgc_settle masks what was sent and takes back what was not", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const bool masks = GENERATE(true, false);
  const int state = GENERATE(0, 1, 2);  // a step, one that is skipped, one with a fault
  CAPTURE(backend->name(), masks, state);
  ApplyCase c(kDealSizes, 1);
  DgcCase& worker = c.workers[0];
  const DgcDeal deal = deal_of(c, 3, 400);
  Dealt dealt = deal_plainly(worker, deal);
  fill_normal(worker, worker.u, 8);
  std::vector<float> sum(c.sum.size(), 0), v = dealt.v, u = worker.u;
  std::vector<float> want_v = v, want_u = u;
  std::vector<int32_t> used(3, 0);
  int64_t dropped = 0, sent = 0;
  for (const Entry& e : entries_of(worker)) {
    const auto i = static_cast<size_t>(e.element);
    const bool had_room = used[static_cast<size_t>(deal.place(e.element).owner)]++ < deal.room;
    if (e.element % 3 != 0) sum[i] = 1;  // also by others, where this worker had no room
    if (!had_room || state != 0) continue;
    if (sum[i] == 0) want_v[i] += e.value;
    if (sum[i] != 0 && masks) want_u[i] = 0;
    ++(sum[i] == 0 ? dropped : sent);
  }
  CHECK((state != 0 || (dropped > 100 && sent > 100)));
  std::vector<StepControl> controls(1);
  controls[0].skip = state == 1 ? 1 : 0;
  if (state == 2) controls[0].fault = {WireFaultKind::stale, 1, 4};
  const Copy control(*backend, controls);
  const Copy rows(*backend, dealt.rows);
  const Copy g(*backend, sum), on_u(*backend, u), on_v(*backend, v);
  backend->dgc_settle({deal, control.data(), rows.data(), g.data(), masks ? on_u.data() : nullptr, on_v.data()});
  on_u.fetch(), on_v.fetch();
  CHECK((bits_of(v) == bits_of(want_v)));
  CHECK((bits_of(u) == bits_of(want_u)));
}
