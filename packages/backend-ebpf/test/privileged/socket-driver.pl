# Sockets as a test wants them, also as no library would use them. Commands come over the Unix socket that is made at PATH, one a
# line; each has a line as its answer. An error is its name.
#
#   socket-driver.pl PATH
#
#   listen ID tcp|udp ADDRESS PORT NAME answers who connects or sends with NAME and the address it came from
#   open ID tcp|udp|ping 4|6           a socket
#   bind ID ADDRESS PORT
#   connect ID ADDRESS PORT            disconnect ID: to AF_UNSPEC
#   send ID TEXT                       sendto ID ADDRESS PORT TEXT
#   recv ID                            "TEXT from ADDRESS PORT", or "timeout"
#   peer ID                            "ADDRESS PORT"
#   close ID
#   repeat COUNT COMMAND               the last answer
#   tally COUNT tcp|udp ADDRESS PORT   so many new sockets: "NAME=COUNT ..." of who answered, or of errors
use strict;
use warnings;
use Errno;
use IO::Select;
use Socket qw(:DEFAULT inet_pton inet_ntop IPPROTO_TCP IPPROTO_UDP SOL_SOCKET SO_REUSEADDR);

$SIG{PIPE} = 'IGNORE';
my %sockets;
my %names;
my $typed = '';
socket(my $door, AF_UNIX, SOCK_STREAM, 0) or die "cannot open a socket: $!\n";
bind $door, pack_sockaddr_un("$ARGV[0].new") or die "cannot bind to $ARGV[0]: $!\n";
listen $door, 1 or die "cannot listen: $!\n";
rename "$ARGV[0].new", $ARGV[0] or die "cannot rename to $ARGV[0]: $!\n";
accept my $control, $door or die "nobody came: $!\n";
my $inputs = IO::Select->new($control);

sub place {
  my ($address, $port) = @_;
  return pack_sockaddr_in($port, inet_pton(AF_INET, $address)) if $address !~ /:/;
  my ($plain, $zone) = split /%/, $address;
  return pack_sockaddr_in6($port, inet_pton(AF_INET6, $plain), $zone // 0, 0);
}

sub text {
  my ($place) = @_;
  my ($port, $address) = sockaddr_family($place) == AF_INET ? unpack_sockaddr_in($place) : (unpack_sockaddr_in6($place))[0, 1];
  return inet_ntop(length $address == 4 ? AF_INET : AF_INET6, $address) . " $port";
}

sub answer { return $_[0] ? 'ok' : failure() }

sub failure {
  my ($name) = grep { $!{$_} } sort keys %!;
  return $name // "error $!";
}

sub make {
  my ($protocol, $family) = @_;
  my $number = {tcp => IPPROTO_TCP, udp => IPPROTO_UDP, ping => $family == 4 ? 1 : 58}->{$protocol};
  my $type = $protocol eq 'tcp' ? SOCK_STREAM : SOCK_DGRAM;
  my $socket;
  socket($socket, $family == 4 ? AF_INET : AF_INET6, $type, $number) or die "socket: $!";
  return $socket;
}

sub receive {
  my ($socket) = @_;
  return 'timeout' unless IO::Select->new($socket)->can_read(2);
  my $from = recv($socket, my $data, 2000, 0);
  return failure() unless defined $from;
  return $data . ' from ' . (length $from ? text($from) : text(getpeername $socket));
}

sub ask_once {
  my ($protocol, $address, $port) = @_;
  my $socket = make($protocol, $address =~ /:/ ? 6 : 4);
  connect $socket, place($address, $port) or return failure();
  if ($protocol eq 'udp') { send $socket, 'who', 0 or return failure() }
  return (split / /, receive($socket))[0];
}

my %commands = (
  listen => sub {
    my ($id, $protocol, $address, $port, $name) = @_;
    my $socket = $sockets{$id} = make($protocol, $address =~ /:/ ? 6 : 4);
    setsockopt $socket, SOL_SOCKET, SO_REUSEADDR, 1;
    bind $socket, place($address, $port) or return failure();
    if ($protocol eq 'tcp') { listen $socket, 1024 or return failure() }
    $names{$socket} = [$protocol, $name];
    $inputs->add($socket);
    return 'ok';
  },
  open => sub { my ($id, @what) = @_; $sockets{$id} = make(@what); return 'ok' },
  bind => sub { my ($id, @where) = @_; return answer(bind $sockets{$id}, place(@where)) },
  connect => sub { my ($id, @where) = @_; return answer(connect $sockets{$id}, place(@where)) },
  disconnect => sub { my ($id) = @_; return answer(connect $sockets{$id}, pack('S x14', AF_UNSPEC)) },
  send => sub { my ($id, $text) = @_; return answer(defined send $sockets{$id}, $text, 0) },
  sendto => sub { my ($id, $address, $port, $text) = @_; return answer(defined send $sockets{$id}, $text, 0, place($address, $port)) },
  recv => sub { my ($id) = @_; return receive($sockets{$id}) },
  peer => sub { my ($id) = @_; my $place = getpeername $sockets{$id}; return defined $place ? text($place) : failure() },
  close => sub { my ($id) = @_; forget(delete $sockets{$id}); return 'ok' },
  tally => sub {
    my ($count, @what) = @_;
    my %counts;
    $counts{ask_once(@what)}++ for 1 .. $count;
    return join ' ', map { "$_=$counts{$_}" } sort keys %counts;
  },
);

sub forget {
  my ($socket) = @_;
  delete $names{$socket};
  $inputs->remove($socket);
  close $socket;
}

sub obey {
  my ($command, @rest) = @_;
  my $times = $command eq 'repeat' ? shift @rest : 1;
  $command = shift @rest if $command eq 'repeat';
  my $answer;
  $answer = $commands{$command}->(@rest) for 1 .. $times;
  return $answer;
}

sub serve {
  my ($socket) = @_;
  my ($protocol, $name) = @{$names{$socket} or return}; # it may have been closed a line ago
  if ($protocol eq 'udp') {
    my $from = recv($socket, my $data, 2000, 0);
    send $socket, "$name " . text($from), 0, $from if defined $from;
  } elsif ($protocol eq 'tcp') {
    my $peer = accept(my $connection, $socket);
    return unless $peer;
    $names{$connection} = ['connection', $name];
    $inputs->add($connection);
    send $connection, "$name " . text($peer), 0;
  } elsif (sysread $socket, my $data, 2000) {
    send $socket, "$name:$data", 0;
  } else {
    forget($socket);
  }
}

while (1) {
  for my $ready ($inputs->can_read) {
    if ($ready != $control) { serve($ready); next }
    sysread $control, $typed, 65536, length $typed or exit 0;
    syswrite $control, obey(split / /, $1) . "\n" while $typed =~ s/^(.*)\n//;
  }
}
