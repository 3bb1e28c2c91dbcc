import { constants } from 'node:os';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { loadAddon } from './addon.ts';
import { errnoName, NativeError } from './native-error.ts';
import { openNetlinkSocket } from './netlink-socket.ts';

describe('the addon', () => {
  test('that is missing says how to build it', () => {
    expect(() => loadAddon([pathToFileURL('/nowhere/switchyard_native.node')])).toThrow(
      'the native addon switchyard_native.node is missing: build it with ./dev build, or use a transport that needs none',
    );
  });

  test('that is no addon says so', () => {
    expect(() => loadAddon([pathToFileURL('/etc/passwd.node'), pathToFileURL('/etc/hostname')])).toThrow(
      /^cannot load the native addon switchyard_native\.node: .*; build it for this machine with \.\/dev build$/,
    );
  });
});

describe('a netlink socket', () => {
  test('has a port id of its own and nothing to receive at first', () => {
    using one = openNetlinkSocket({ protocol: 'route' });
    using two = openNetlinkSocket({ protocol: 'route' });
    expect(one.portId).not.toBe(two.portId);
    expect(one.receive(Buffer.alloc(64))).toBeUndefined();
  });

  test('answers a request as soon as it was sent', () => {
    using socket = openNetlinkSocket({ protocol: 'route' });
    const NLM_F_REQUEST_ACK = 5;
    const noop = Buffer.alloc(16);
    noop.writeUInt32LE(16, 0);
    noop.writeUInt16LE(0xfff0, 4); // no such message
    noop.writeUInt16LE(NLM_F_REQUEST_ACK, 6);
    noop.writeUInt32LE(7, 8);
    socket.send(noop);
    const answer = Buffer.alloc(256);
    const length = socket.receive(answer) ?? 0;
    expect({ type: answer.readUInt16LE(4), seq: answer.readUInt32LE(8), errno: -answer.readInt32LE(16) }).toEqual({
      type: 2,
      seq: 7,
      errno: constants.errno.EOPNOTSUPP,
    });
    expect(length).toBeGreaterThan(16);
  });

  test('refuses to work after it was closed, twice closed or not', () => {
    const socket = openNetlinkSocket({ protocol: 'route' });
    socket[Symbol.dispose]();
    socket[Symbol.dispose]();
    expect(() => socket.send(Buffer.alloc(16))).toThrow('this netlink socket was closed before');
    expect(() => socket.receive(Buffer.alloc(16))).toThrow('this netlink socket was closed before');
  });

  test('names the namespace that is not there', () => {
    expect(() => openNetlinkSocket({ protocol: 'route', netns: '/run/netns/none' })).toThrow(
      'cannot open a netlink socket (route) in the network namespace /run/netns/none: open failed with ENOENT',
    );
  });
});

describe('NativeError', () => {
  test('has the number and the name', () => {
    const error = new NativeError('cannot do it', { errno: constants.errno.ENOBUFS, syscall: 'recvfrom' }, 'wait');
    expect(error).toMatchObject({
      code: 'native.ENOBUFS',
      errnoName: 'ENOBUFS',
      message: 'cannot do it: recvfrom failed with ENOBUFS; wait',
    });
    expect(errnoName(4095)).toBe('errno 4095');
  });
});
