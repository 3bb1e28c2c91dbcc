import type { PageDocument, PageWindow } from './dom.ts';
import { startMatrixPage } from './matrix-page.ts';

declare const document: PageDocument;
declare const window: PageWindow;

startMatrixPage(document, window);
