//! A scrape, read: what a test asks of metrics. Reads the text format; knows no metric by name.

/// The samples of one scrape.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Metrics {
    /// Reads the text format; lines that are no samples are left out.
    pub fn parse(text: &str) -> Self {
        Self {
            samples: text.lines().filter(|line| !line.starts_with('#')).filter_map(Sample::parse).collect(),
        }
    }

    /// The sum of all samples of a name that carry these labels, 0 if there are none.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        // From +0: the sum of no floats is -0.
        self.samples
            .iter()
            .filter(|sample| sample.is(name, labels))
            .fold(0.0, |sum, sample| sum + sample.value)
    }

    /// Whether there is any sample of a name.
    pub fn has(&self, name: &str) -> bool {
        self.samples.iter().any(|sample| sample.name == name)
    }

    /// All names, sorted, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.samples.iter().map(|sample| sample.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Sample {
    fn parse(line: &str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.trim_end().strip_suffix('}')?),
            None => (series, ""),
        };
        let labels = labels.split("\",").filter_map(|label| {
            let (name, value) = label.split_once("=\"")?;
            Some((name.trim_start_matches(',').to_owned(), value.trim_end_matches('"').to_owned()))
        });
        Some(Self { name: name.to_owned(), labels: labels.collect(), value: value.parse().ok()? })
    }

    fn is(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        let carries = |(name, value): &(&str, &str)| self.labels.iter().any(|(n, v)| n == name && v == value);
        self.name == name && labels.iter().all(carries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_over_the_labels_that_are_not_named() {
        let text = "# TYPE calls_total counter\ncalls_total{target=\"a\",code=\"200\"} 2\n\
                    calls_total{target=\"a\",code=\"404\"} 1\ncalls_total{target=\"b\",code=\"200\"} 4\nup 1\n";
        let metrics = Metrics::parse(text);
        assert_eq!(metrics.sum("calls_total", &[("target", "a")]).to_bits(), 3f64.to_bits());
        assert_eq!(metrics.sum("calls_total", &[("code", "200")]).to_bits(), 6f64.to_bits());
        assert_eq!(metrics.sum("missing", &[]).to_bits(), 0f64.to_bits());
        assert_eq!(metrics.names(), ["calls_total", "up"]);
    }
}
