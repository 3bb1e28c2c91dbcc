// preStop hook for containers without a shell: asks a drain gate when the pod can be stopped, and ends with 0 when it can. Static, so that it
// runs in any image; a pod mounts the agent's image as a volume (docs/operate/drain-gate.md). It knows the pod by the addresses of its network
// namespace. It repeats the question until a gate answers or the time is over.

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {
using Clock = std::chrono::steady_clock;

constexpr const char* kUsage =
    "usage: switchyard-drain-hook [--gate HOST[:PORT]] [--seconds N] [--connections wait|wait-udp|ignore]\n"
    "  --gate         default switchyard-drain-gate.kube-system:10247\n"
    "  --seconds      longest wait, 1 to 3600; default 20\n"
    "  --connections  wait for TCP and SCTP (default), wait-udp also for UDP flows in use, or ignore them\n";
constexpr auto kRetryPause = std::chrono::milliseconds(200);

struct Options {
  std::string host = "switchyard-drain-gate.kube-system";
  std::string port = "10247";
  int seconds = 20;
  std::string connections = "wait";
};

int Fail(const std::string& message) {
  fprintf(stderr, "switchyard-drain-hook: %s\n", message.c_str());
  return 1;
}

bool Read(int argc, char** argv, Options* options) {
  for (int i = 1; i + 1 < argc + 1; i += 2) {
    if (i + 1 >= argc) return false;
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--gate") {
      const size_t colon = value.rfind(':');
      const bool has_port = colon != std::string::npos && value.find(':') == colon;
      options->host = has_port ? value.substr(0, colon) : value;
      if (has_port) options->port = value.substr(colon + 1);
    } else if (name == "--seconds") {
      options->seconds = atoi(value.c_str());
    } else if (name == "--connections") {
      options->connections = value;
    } else {
      return false;
    }
  }
  const bool is_known = options->connections == "wait" || options->connections == "wait-udp" ||
                        options->connections == "ignore";
  return is_known && options->seconds >= 1 && options->seconds <= 3600 && atoi(options->port.c_str()) > 0;
}

// Addresses of this network namespace, without loopback and links, separated by commas.
std::string OwnAddresses() {
  std::string all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return all;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (one->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const in6_addr* address = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(address)) inet_ntop(AF_INET6, address, text, sizeof text);
    }
    if (text[0] != '\0') all += (all.empty() ? "" : ",") + std::string(text);
  }
  freeifaddrs(list);
  return all;
}

// Addresses of a name by DNS; a static program cannot use the C library's other sources.
std::vector<sockaddr_storage> Resolve(const Options& options) {
  std::vector<sockaddr_storage> found;
  const auto port = htons(static_cast<uint16_t>(atoi(options.port.c_str())));
  const auto add = [&](int family, const void* bytes) {
    sockaddr_storage place{};
    place.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) {
      auto* in = reinterpret_cast<sockaddr_in*>(&place);
      in->sin_port = port;
      memcpy(&in->sin_addr, bytes, sizeof in->sin_addr);
    } else {
      auto* in = reinterpret_cast<sockaddr_in6*>(&place);
      in->sin6_port = port;
      memcpy(&in->sin6_addr, bytes, sizeof in->sin6_addr);
    }
    found.push_back(place);
  };
  unsigned char literal[sizeof(in6_addr)];
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, options.host.c_str(), literal) == 1) add(family, literal);
  }
  for (const int type : {ns_t_a, ns_t_aaaa}) {
    if (!found.empty()) break;
    unsigned char answer[4096];
    const int length = res_search(options.host.c_str(), ns_c_in, type, answer, sizeof answer);
    ns_msg message;
    if (length < 0 || ns_initparse(answer, length, &message) != 0) continue;
    for (int i = 0; i < ns_msg_count(message, ns_s_an); i++) {
      ns_rr record;
      if (ns_parserr(&message, ns_s_an, i, &record) == 0 && ns_rr_type(record) == type)
        add(type == ns_t_a ? AF_INET : AF_INET6, ns_rr_rdata(record));
    }
  }
  return found;
}

// The whole answer of one request; empty, with the reason in errno, if there is none.
std::string Ask(const sockaddr_storage& gate, const std::string& request, int seconds) {
  const int fd = socket(gate.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  const timeval limit{seconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const socklen_t length = gate.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::string answer;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&gate), length) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t got; (got = recv(fd, buffer, sizeof buffer, 0)) > 0;) answer.append(buffer, got);
  }
  const int reason = errno;
  close(fd);
  errno = reason;
  return answer;
}
}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Read(argc, argv, &options)) {
    fputs(kUsage, stderr);
    return 1;
  }
  const std::string pod = OwnAddresses();
  if (pod.empty()) return Fail("this network namespace has no address");
  const auto end = Clock::now() + std::chrono::seconds(options.seconds);
  std::string problem;
  for (;;) {
    const auto rest = std::chrono::ceil<std::chrono::seconds>(end - Clock::now()).count();
    if (rest < 1) return Fail(problem.empty() ? "no time is left" : problem);
    const std::string request = "GET /drain?pod=" + pod + "&seconds=" + std::to_string(rest) + "&connections=" +
                                options.connections + " HTTP/1.1\r\nHost: " + options.host + "\r\nConnection: close\r\n\r\n";
    const std::vector<sockaddr_storage> gates = Resolve(options);
    if (gates.empty()) problem = "DNS has no address of " + options.host;
    for (const sockaddr_storage& gate : gates) {
      const std::string answer = Ask(gate, request, static_cast<int>(rest) + 2);
      const size_t body = answer.find("\r\n\r\n");
      if (body == std::string::npos) {
        problem = options.host + ":" + options.port + " gives no answer: " + strerror(errno);
        continue;
      }
      fputs(answer.c_str() + body + 4, stdout);
      return answer.rfind("HTTP/1.1 200", 0) == 0 ? 0 : 1;
    }
    usleep(std::chrono::duration_cast<std::chrono::microseconds>(kRetryPause).count());
  }
}
