// During an update the page of one version asks a process of another for its files, and gets 404:
// for the page's own script, and for a part that is loaded later.
export default async ({come, key}) => {
	const v = await come()
	v.expected.push(/404/)
	let missing = {test: /$^/, times: 0}
	await v.page.setRequestInterception(true)
	v.page.on('request', request => {
		if (missing.times > 0 && missing.test.test(request.url())) {
			missing.times--
			return request.respond({status: 404, contentType: 'application/json', headers: {'Cache-Control': 'no-store'}, body: '{}'})
		}
		return request.continue()
	})
	missing = {test: /assets\/index-.*\.js/, times: 1}
	await v.go('/sign-in')
	await v.sees('Sign in')
	await v.signIn(key)
	await v.press('link', 'Account')
	await v.at('heading', 'Balance')

	missing = {test: /assets\/Usage-.*\.js/, times: 2}
	await v.press('link', 'Usage')
	await v.at('heading', 'Usage')
	missing = {test: /assets\/Keys-.*\.css/, times: 1}
	await v.press('link', 'Keys')
	await v.at('heading', 'Keys')
	await v.leave()
}
