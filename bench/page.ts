/** A report as one HTML page that needs nothing else. */
import { writeFile } from 'node:fs/promises'
import { html, raw } from 'hono/html'

export interface Page {
  readonly title: string
  /** The meaning of the colours, and the build that was measured. */
  readonly words: string
  readonly report: string
  /** SVG in `figure` elements. */
  readonly charts: readonly string[]
}

export async function writePage(
  path: string,
  { title, words, report, charts }: Page,
): Promise<void> {
  const text = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>${title}</title>
        <style>
          body {
            font:
              16px/1.5 system-ui,
              sans-serif;
            max-width: 1000px;
            margin: 2em auto;
            padding: 0 1em;
          }
          svg {
            width: 100%;
            border: 1px solid #ccc;
          }
          figure {
            margin: 1.5em 0;
          }
        </style>
      </head>
      <body>
        <h1>${title}</h1>
        <p>${words}</p>
        <pre>${report}</pre>
        ${raw(charts.join('\n'))}
      </body>
    </html>`
  await writeFile(path, String(await text))
}
