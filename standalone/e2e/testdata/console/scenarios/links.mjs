// The links that the standalone prints sign in, each once: one as the demo account, one
// as the operator.
import {ask, must} from '../browser.mjs'

export default async ({come}) => {
	const links = await ask('links')
	must(links.length === 2, `the banner has ${links.length} links`)
	const seen = []
	for (const link of links) {
		const first = await come()
		await first.page.goto(link)
		await first.holds(() => /\/console\/(playground|operator)$/.test(location.pathname))
		seen.push(new URL(first.page.url()).pathname)
		must(!first.page.url().includes('link='), `the token stays in the address: ${first.page.url()}`)
		await first.leave()

		const second = await come()
		second.expected.push(/401/)
		await second.page.goto(link)
		await second.sees('This link has been used')
		await second.leave()
	}
	must(seen.join() === '/console/playground,/console/operator', `the links lead to ${seen}`)
}
