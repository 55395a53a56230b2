// What a first visit loads, and how soon something is shown, beside an answer of a few
// bytes. Prints a line of JSON for each page; `make bench` reads them.
export default async ({come, base, key, times}) => {
	const pages = {'/sign-in': false, '/playground': true, '/playground?model=alpha-v3': true}
	const median = list => list.toSorted((a, b) => a - b)[list.length >> 1]
	const paint = page => page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0)
	for (const [to, signed] of Object.entries(pages)) {
		let bytes = 0, requests = 0
		const shown = [], floor = []
		for (let i = 0; i < times; i++) {
			const v = await come()
			if (signed) await v.signIn(key)
			const network = await v.page.createCDPSession()
			await network.send('Network.enable')
			await network.send('Network.setCacheDisabled', {cacheDisabled: true})
			await v.page.goto(`${base}/healthz`)
			floor.push(await paint(v.page))
			bytes = requests = 0
			network.on('Network.loadingFinished', e => { bytes += e.encodedDataLength; requests++ })
			await v.go(to)
			await v.settles()
			shown.push(await paint(v.page))
			await v.context.close()
		}
		console.log(JSON.stringify({page: to, bytes, requests, paint_ms: median(shown), floor_ms: median(floor)}))
	}
}
