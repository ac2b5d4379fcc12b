/** A report of an overload as one HTML page that needs nothing else: goodput against what was offered, as SVG. */
import { describeBuild, type Stamped } from '../build.ts'
import { writePage } from '../page.ts'
import { describeOverload, type OverloadReport } from './overload.ts'

const width = 1_000
const height = 400

/** Goodput by offered load, with four fifths of the best as a line. */
function chart({ best, steps }: OverloadReport): string {
  const mostOffered = Math.max(1, ...steps.map(({ offered }) => offered))
  const mostDone = Math.max(1, best, ...steps.map(({ goodput }) => goodput))
  const x = (offered: number): string => ((offered / mostOffered) * width).toFixed(1)
  const y = (goodput: number): string => (height - (goodput / mostDone) * height).toFixed(1)
  const points = steps.map(({ offered, goodput }) => `${x(offered)},${y(goodput)}`)
  const dots = steps.map(
    ({ offered, goodput }) =>
      `<circle cx="${x(offered)}" cy="${y(goodput)}" r="4" fill="#246"><title>${Math.round(offered)}/s offered, ${Math.round(goodput)}/s acknowledged</title></circle>`,
  )
  const wanted = y(0.8 * best)
  return `<figure><svg viewBox="0 0 ${width} ${height}" role="img"><line x1="0" x2="${width}" y1="${wanted}" y2="${wanted}" stroke="#c60" stroke-dasharray="6 4"/><polyline points="${points.join(' ')}" fill="none" stroke="#246" stroke-width="1.5"/>${dots.join('')}</svg><figcaption>Acknowledged a second, up to ${Math.round(mostDone)}, by puts offered a second, up to ${Math.round(mostOffered)}; dashed: four fifths of the best</figcaption></figure>`
}

export async function writeOverloadPage(
  page: string,
  report: Stamped<OverloadReport>,
): Promise<void> {
  const build = report.build === undefined ? '' : describeBuild(report.build)
  await writePage(page, {
    title: 'More than can be done',
    words: build,
    report: describeOverload(report),
    charts: [chart(report)],
  })
}
