#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace dgc {

// The network interfaces of this machine, and at which of their addresses rank 0 listens. Addresses are numeric.

struct OwnAddress {
  std::string interface, address;
};

// The addresses of the interfaces that are up, but for those that hold on one link alone (fe80::...).
std::vector<OwnAddress> own_addresses();
// Each address once, also where several interfaces have it: nobody can listen at one twice.
std::vector<std::string> distinct_addresses(const std::vector<OwnAddress>&);

// An address as text, without its port; empty where the system does not tell.
std::string numeric_address(const sockaddr*, socklen_t);

bool is_loopback(const std::string& address);

inline const std::vector<std::string> kLoopback = {"127.0.0.1", "::1"};
inline const std::vector<std::string> kEverywhere = {"0.0.0.0", "::"};

// What exchange.interface names: the addresses of an interface, or one address of this machine. Throws UserError that
// lists what this machine has.
std::vector<std::string> addresses_of_interface(const std::string& name, const std::vector<OwnAddress>& own);
// The same for ranks on other machines: refuses the loopback, too.
std::vector<std::string> addresses_for_other_machines(const std::string& name, const std::vector<OwnAddress>& own);

// Where rank 0 listens for those who look for it at `host`, which has the addresses `found` here: at those that are
// this machine's. Where there is none, or `host` is another name than localhost for the loopback alone, as Debian's
// /etc/hosts has it for the machine's own name, other machines see another address: then everywhere.
std::vector<std::string> meeting_addresses(const std::string& host, const std::vector<std::string>& found,
                                           const std::vector<OwnAddress>& own);

}  // namespace dgc
