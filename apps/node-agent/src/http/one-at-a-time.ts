import { type HttpHandler, textAnswer } from '@switchyard/core/health';

/** Limits `handler` to one request at a time; concurrent requests get 429. For expensive endpoints. */
export function oneAtATime(handler: HttpHandler): HttpHandler {
  let isBusy = false;
  return async (request, signal) => {
    if (isBusy) return textAnswer(429, `429 ${request.path} is busy with another request; try again\n`);
    isBusy = true;
    try {
      return await handler(request, signal);
    } finally {
      isBusy = false;
    }
  };
}
