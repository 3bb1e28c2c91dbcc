import { expect, test } from 'vitest';
import { messageOf } from './errors.ts';

test('an error whose clean-up failed too has both messages, in their order', () => {
  const ended = new SuppressedError(new Error('the lab is busy'), new Error('no answer'));
  const outer = new SuppressedError(new Error('a file is left'), ended);
  expect(messageOf(outer)).toBe('no answer; then the lab is busy; then a file is left');
});
