import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LabHost } from '@switchyard/lab';
import { chromium, type Page } from 'playwright-core';

/** A page in a headless Chromium. */
export interface OpenPage extends AsyncDisposable {
  readonly page: Page;
  /** Failures and error messages of the page's program. */
  readonly errors: readonly string[];
}

/** Opens `url` in Debian's Chromium, with the network of `host`. */
export async function openPage({ namespace }: LabHost, url: string): Promise<OpenPage> {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-page-'));
  const browserInside = join(folder, 'chromium');
  await writeFile(browserInside, `#!/bin/sh\nexec nsenter --net=/run/netns/${namespace} -- chromium "$@"\n`);
  await chmod(browserInside, 0o755);
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'];
  const browser = await chromium.launch({ executablePath: browserInside, args });
  const errors: string[] = [];
  const close = async (): Promise<void> => {
    await browser.close();
    await rm(folder, { recursive: true });
  };
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
    page.on('pageerror', (error) => void errors.push(error.message));
    page.on('console', (message) => void (message.type() === 'error' && errors.push(message.text())));
    await page.goto(url);
    return { page, errors, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
