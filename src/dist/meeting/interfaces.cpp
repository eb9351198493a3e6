#include "dist/meeting/interfaces.h"

#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>

#include "tensor/errors.h"

namespace dgc {
namespace {

// Numeric; empty where the address is of no use to other machines or of another protocol.
std::string usable(const sockaddr* address) {
  if (address == nullptr) return "";
  const bool ipv6 = address->sa_family == AF_INET6;
  if (!ipv6 && address->sa_family != AF_INET) return "";
  if (ipv6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)) return "";
  return numeric_address(address, ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
}

// "eth0 (10.0.0.5, fd00::5), lo (127.0.0.1)"
std::string listed(const std::vector<OwnAddress>& own) {
  std::map<std::string, std::vector<std::string>> by_interface;
  for (const OwnAddress& one : own) by_interface[one.interface].push_back(one.address);
  std::vector<std::string> all;
  for (const auto& [name, addresses] : by_interface) {
    all.push_back(fmt::format("{} ({})", name, fmt::join(addresses, ", ")));
  }
  return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

std::string numeric_address(const sockaddr* address, socklen_t size) {
  std::array<char, 128> text{};  // an IPv6 address and the name of an interface
  const int error = getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

std::vector<OwnAddress> own_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<OwnAddress> own;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const std::string address = (one->ifa_flags & IFF_UP) == 0 ? "" : usable(one->ifa_addr);
    if (!address.empty()) own.push_back({one->ifa_name, address});
  }
  return own;
}

std::vector<std::string> distinct_addresses(const std::vector<OwnAddress>& own) {
  std::vector<std::string> addresses;
  for (const OwnAddress& one : own) {
    if (std::ranges::count(addresses, one.address) == 0) addresses.push_back(one.address);
  }
  return addresses;
}

bool is_loopback(const std::string& address) { return address == "::1" || address.starts_with("127."); }

std::vector<std::string> addresses_of_interface(const std::string& name, const std::vector<OwnAddress>& own) {
  std::vector<OwnAddress> named;
  std::ranges::copy_if(own, std::back_inserter(named),
                       [&](const OwnAddress& one) { return one.interface == name || one.address == name; });
  if (named.empty()) {
    throw_user_error(
        "exchange.interface: \"{}\" is no interface of rank 0's machine that is up, and no address of one; there are: "
        "{}",
        name, listed(own));
  }
  return distinct_addresses(named);
}

std::vector<std::string> addresses_for_other_machines(const std::string& name, const std::vector<OwnAddress>& own) {
  std::vector<std::string> addresses = addresses_of_interface(name, own);
  if (!std::ranges::all_of(addresses, is_loopback)) return addresses;
  std::vector<OwnAddress> others;
  std::ranges::copy_if(own, std::back_inserter(others),
                       [](const OwnAddress& one) { return !is_loopback(one.address); });
  throw_user_error(
      "exchange.interface: \"{}\" is the loopback of rank 0's machine, which ranks on other machines do not reach; "
      "there are: {}",
      name, listed(others));
}

std::vector<std::string> meeting_addresses(const std::string& host, const std::vector<std::string>& found,
                                           const std::vector<OwnAddress>& own) {
  std::vector<std::string> here;
  for (const std::string& address : found) {
    const bool ours = is_loopback(address) || std::ranges::count(own, address, &OwnAddress::address) > 0;
    if (ours && std::ranges::count(here, address) == 0) here.push_back(address);
  }
  const bool says_loopback = host == "localhost" || std::ranges::count(found, host) > 0;
  const bool tells = !here.empty() && (says_loopback || !std::ranges::all_of(here, is_loopback));
  return tells ? here : kEverywhere;
}

}  // namespace dgc
