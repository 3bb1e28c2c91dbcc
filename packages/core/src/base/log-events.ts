import { requireMethods } from './argument.ts';
import type { EventRecorder } from './events.ts';
import type { Logger } from './log.ts';

/** Returns a recorder that writes events to the log, for use without an API server. Throws `UsageError` for what is no logger. */
export function logEvents(logger: Logger): EventRecorder {
  requireMethods('logEvents: logger', logger, ['info', 'warn']);
  return {
    record: ({ type, reason, action, regarding, note }) => {
      const { kind, namespace, name } = regarding;
      const fields = {
        reason,
        action,
        regarding: namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`,
        note,
      };
      if (type === 'Warning') logger.warn('event', fields);
      else logger.info('event', fields);
    },
  };
}
