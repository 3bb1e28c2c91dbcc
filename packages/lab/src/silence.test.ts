import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { afterSilence } from './probe.ts';

/** Stands still, as a process does that gets no processor. */
function standStill(duration: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, duration);
}

function monotonicAfter(timeout: number): Promise<number> {
  const start = performance.now();
  return new Promise((resolve) => afterSilence(timeout, () => resolve(performance.now() - start)));
}

test.each([10, 250, 600])('comes after %i ms, and not before', async (timeout) => {
  const took = await monotonicAfter(timeout);
  expect(took).toBeGreaterThanOrEqual(timeout - 1);
});

test('does not count a pause of the whole process', async () => {
  const silence = monotonicAfter(600);
  standStill(700);
  expect(await silence).toBeGreaterThanOrEqual(700 + 350 - 1);
});

test('comes after an answer that lay unread in a socket', async () => {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const heard: string[] = [];
  socket.on('message', (message) => heard.push(message.toString()));
  const sender = createSocket('udp4');
  await new Promise((resolve) => sender.send('late', socket.address().port, '127.0.0.1', resolve));
  await new Promise<void>((resolve) => {
    afterSilence(1, () => {
      heard.push('silence');
      resolve();
    });
    standStill(50);
  });
  expect(heard).toEqual(['late', 'silence']);
  socket.close();
  sender.close();
});

test.each([0, 300])('can be called off %i ms later', async (later) => {
  let isCalled = false;
  const stop = afterSilence(20 + later, () => (isCalled = true));
  await new Promise((resolve) => setTimeout(resolve, later));
  stop();
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(isCalled).toBe(false);
});
